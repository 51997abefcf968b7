package main

import (
	"encoding/binary"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
)

const (
	lengthSize = 4 // each frame begins with its length

	// Larger than any frame that brokers accept by default (100 MB), and smaller than what the first bytes of TLS or of
	// HTTP would be as a length.
	frameMax = 256 << 20

	// How much of a frame is looked at to know what it is: of a response its correlation id; of a request the header with
	// an ordinary client id, and in Produce requests what comes before the records.
	responseHead = 4
	requestHead  = 512
)

// framing is where one direction of a connection is within its frames. It is followed all the time, so that a rule that is
// imposed on an open connection finds where the next frame begins.
type framing struct {
	head []byte // of a frame whose kind is not known yet, its length included
	left int    // bytes to come of the frame whose head was read

	kept       []byte   // of a frame that was not decided upon yet, all that came of it
	whole      bool     // kept has the frame from its first byte on
	assembling *request // it is decided upon when all of it is there
	held       bool     // what is kept, and all behind it, waits for another condition
	behind     []byte
	decided    []byte // what may pass, gathered: pieces of frames would each cost a write
	clientID   string
}

// receive takes in what the sender has sent.
func (c *connection) receive(regime *regime, received *stream.StreamChunk) {
	switch {
	case c.talk.isForeign():
		c.unkeep()
		c.flush(regime)
		regime.enqueue(c, received)
	case len(regime.rules) > 0 || len(c.kept) > 0 || (c.towards == source && c.talk.owes()):
		c.decided = make([]byte, 0, len(c.kept)+len(received.Data))
		c.sift(regime, received.Data)
		c.flush(regime)
	default:
		c.follow(received.Data)
		regime.enqueue(c, received)
	}
}

// follow only keeps track of frames, in bytes that pass as they are.
func (c *connection) follow(data []byte) {
	c.whole = false
	for len(data) > 0 {
		if c.left > 0 {
			size := min(c.left, len(data))
			c.left -= size
			data = data[size:]
			continue
		}
		size, complete := c.readHead(data)
		data = data[size:]
		if complete {
			c.identify()
		}
		if c.talk.isForeign() {
			return
		}
	}
}

// sift takes the stream apart, decides about each frame and lets them pass, if they may, in their order.
func (c *connection) sift(regime *regime, data []byte) {
	for len(data) > 0 && !c.ended {
		if c.held {
			c.behind = append(c.behind, data...)
			return
		}
		if c.left > 0 {
			data = c.siftBody(regime, data)
		} else {
			data = c.siftHead(regime, data)
		}
		if c.talk.isForeign() {
			c.unkeep()
			c.emit(data)
			return
		}
		c.inject()
	}
}

func (c *connection) siftHead(regime *regime, data []byte) []byte {
	if len(c.head) == 0 {
		c.whole = true
	}
	size, complete := c.readHead(data)
	c.kept = append(c.kept, data[:size]...)
	if !complete {
		return data[size:]
	}
	request := c.identify()
	switch {
	case request == nil:
	case c.whole && c.towards == destination && regime.mustRead(request):
		c.assembling = request
		if c.left == 0 {
			c.decideOnWhole(regime)
		}
	default:
		c.decide(regime, request, nil)
	}
	return data[size:]
}

func (c *connection) siftBody(regime *regime, data []byte) []byte {
	size := min(c.left, len(data))
	c.left -= size
	if c.assembling == nil {
		c.emit(data[:size])
	} else {
		c.kept = append(c.kept, data[:size]...)
		if c.left == 0 {
			c.decideOnWhole(regime)
		}
	}
	return data[size:]
}

// readHead takes bytes for the head of a frame and tells whether it is complete. A length that no frame has ends all
// framing on this connection.
func (c *connection) readHead(data []byte) (size int, complete bool) {
	for {
		want, ok := c.headSize()
		if !ok {
			c.talk.giveUp()
			return size, false
		}
		more := min(want-len(c.head), len(data)-size)
		c.head = append(c.head, data[size:size+more]...)
		size += more
		if len(c.head) < want {
			return size, false
		}
		if want > lengthSize {
			return size, true
		}
	}
}

func (c *connection) headSize() (size int, ok bool) {
	if len(c.head) < lengthSize {
		return lengthSize, true
	}
	looked := requestHead
	if c.towards == source {
		looked = responseHead
	}
	length := int(binary.BigEndian.Uint32(c.head))
	return lengthSize + min(length, looked), responseHead <= length && length <= frameMax
}

// identify finds out which request it is that begins with this head, or is answered with it.
func (c *connection) identify() *request {
	length, head := int(binary.BigEndian.Uint32(c.head)), c.head[lengthSize:]
	c.left = length - len(head)
	c.head = c.head[:0]
	if c.towards == source {
		return c.talk.match(int32(binary.BigEndian.Uint32(head)))
	}
	request, ok := readRequest(head, c.clientID)
	if !ok {
		c.talk.giveUp()
		return nil
	}
	c.clientID = request.clientID
	c.talk.asked(request)
	return request
}

// mustRead tells whether the whole request has to be read before it can be decided what to do, with it or its response.
func (r *regime) mustRead(request *request) bool {
	for _, rule := range r.rules {
		if rule.concerns(request) && (rule.namesPartitions() || rule.Do == "answer") {
			return true
		}
	}
	return false
}

func (c *connection) decideOnWhole(regime *regime) {
	request := c.assembling
	c.assembling = nil
	parsed := parseRequest(c.kept[lengthSize:])
	if parsed == nil { // a version we do not know
		c.unkeep()
		return
	}
	c.talk.names(request, partitionsOf(parsed))
	c.decide(regime, request, func(code int16) []byte { return answer(parsed, request.correlation, code) })
}

// decide does with a frame what the first rule that matches it says.
func (c *connection) decide(regime *regime, request *request, answer func(code int16) []byte) {
	side := requestSide
	if c.towards == source {
		side = responseSide
	}
	for _, rule := range regime.rules {
		if !c.whole || (rule.Do == "answer" && answer == nil) || !rule.matches(side, request) {
			continue
		}
		switch {
		case rule.Do == "hold":
			c.held = true
		case rule.Do == "postpone":
			c.flush(regime)
			due := time.Now().Add(time.Duration(rule.Ms) * time.Millisecond)
			c.waiting = append(c.waiting, chunk{&stream.StreamChunk{Data: c.kept}, due})
			c.kept = nil
		case rule.Do == "answer" && !request.silent:
			c.kept = nil
			c.talk.respond(request, answer(rule.ErrorCode))
		default: // dropped; a broker reports an error of acks=0 by closing the connection, and so does this
			c.breakOff()
			c.talk.breakOff()
		}
		return
	}
	c.unkeep()
}

// unkeep lets pass what was kept.
func (c *connection) unkeep() {
	c.emit(c.kept)
	c.kept, c.assembling, c.whole = nil, nil, false
}

// release lets pass what an earlier condition has held; what came behind it is under the new one.
func (c *connection) release(regime *regime) {
	behind := c.behind
	c.held, c.behind = false, nil
	c.unkeep()
	c.flush(regime)
	if len(behind) > 0 {
		c.receive(regime, &stream.StreamChunk{Data: behind, Timestamp: time.Now()})
	}
	c.inject()
	c.flush(regime)
}

// breakOff ends the connection after what may still pass; what is kept is lost.
func (c *connection) breakOff() {
	c.ended = true
	c.kept, c.assembling, c.held, c.behind = nil, nil, false, nil
}

// inject lets answers of ours pass whose turn has come, between two frames.
func (c *connection) inject() {
	if c.towards != source || c.held || c.left > 0 || len(c.head) > 0 {
		return
	}
	for _, answer := range c.talk.dueAnswers() {
		c.emit(answer)
	}
}

func (c *connection) emit(data []byte) {
	c.decided = append(c.decided, data...)
}

// flush passes on what was decided upon.
func (c *connection) flush(regime *regime) {
	if len(c.decided) > 0 {
		regime.enqueue(c, &stream.StreamChunk{Data: c.decided, Timestamp: time.Now()})
		c.decided = nil
	}
}
