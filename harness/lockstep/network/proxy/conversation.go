package main

import (
	"encoding/binary"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Requests that wait for their responses on one connection. A client has a few under way; so many mean that what looks
// like requests is something else.
const underWayMax = 1 << 16

// conversation is what both directions of one connection know of each other: which responses are to come, in order.
//
// A broker answers the requests of a connection in their order, so a response of ours may go out only when all that were
// asked before it are answered.
type conversation struct {
	mutex    sync.Mutex
	underWay []*request
	owed     int  // how many of them have an answer of ours
	foreign  bool // it does not speak Kafka's protocol, or not plainly: it passes, untouched

	answered chan struct{} // an answer of ours may be due
	broken   chan struct{} // closed when a frame was dropped: the connection ends
	once     sync.Once
}

const (
	// Api keys and versions beyond these are taken for something other than Kafka's protocol.
	keyMax     = 1000
	versionMax = 100
)

// request is what is remembered of one until it is answered.
type request struct {
	key, version int16
	correlation  int32
	clientID     string
	silent       bool        // Produce with acks=0: nothing comes back
	partitions   []partition // only if a rule asks for them
	answer       []byte      // ours, in the broker's place
}

func newConversation() *conversation {
	return &conversation{answered: make(chan struct{}, 1), broken: make(chan struct{})}
}

// nextConversation makes the two directions of a new connection meet. Toxiproxy starts them one after the other, towards
// the destination first, from the one loop that accepts connections of that proxy.
type nextConversation struct {
	mutex   sync.Mutex
	waiting *conversation
}

// meetings are by link.
var meetings sync.Map

func meet(link, towards string) *conversation {
	found, _ := meetings.LoadOrStore(link, new(nextConversation))
	next := found.(*nextConversation)
	next.mutex.Lock()
	defer next.mutex.Unlock()
	if towards == destination || next.waiting == nil {
		next.waiting = newConversation()
	}
	talk := next.waiting
	if towards == source {
		next.waiting = nil
	}
	return talk
}

func (c *conversation) isForeign() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.foreign
}

// giveUp is for streams that cannot be Kafka's.
func (c *conversation) giveUp() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.forget()
}

func (c *conversation) forget() {
	c.foreign = true
	c.underWay, c.owed = nil, 0
}

// breakOff ends the connection, in both directions.
func (c *conversation) breakOff() {
	c.once.Do(func() { close(c.broken) })
}

// asked notes a request.
func (c *conversation) asked(request *request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.foreign || request.silent:
	case len(c.underWay) == underWayMax:
		c.forget()
	default:
		c.underWay = append(c.underWay, request)
	}
}

// names notes which partitions a request names, so that the rules for its response can match them.
func (c *conversation) names(request *request, partitions []partition) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	request.partitions = partitions
}

// respond puts a response of ours where the broker's would be.
func (c *conversation) respond(request *request, answer []byte) {
	c.mutex.Lock()
	request.answer = answer
	c.owed++
	c.mutex.Unlock()
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// match finds the request that a response belongs to, which is the oldest, or nil: then it is not Kafka's protocol.
func (c *conversation) match(correlation int32) *request {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.underWay) == 0 || c.underWay[0].correlation != correlation {
		c.forget()
		return nil
	}
	oldest := c.underWay[0]
	c.underWay[0] = nil
	c.underWay = c.underWay[1:]
	return oldest
}

// dueAnswers are the proxy's own responses that wait for no earlier response of the broker on this connection.
func (c *conversation) dueAnswers() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var due [][]byte
	for len(c.underWay) > 0 && c.underWay[0].answer != nil {
		due = append(due, c.underWay[0].answer)
		c.underWay = c.underWay[1:]
		c.owed--
	}
	return due
}

// owes tells whether an answer of ours waits for others before it.
func (c *conversation) owes() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.owed > 0
}

// readRequest reads the beginning of a request frame, after its length; false if no request begins like this.
func readRequest(head []byte, knownClient string) (*request, bool) {
	if len(head) < 8 {
		return nil, false
	}
	read := &request{
		key:         int16(binary.BigEndian.Uint16(head)),
		version:     int16(binary.BigEndian.Uint16(head[2:])),
		correlation: int32(binary.BigEndian.Uint32(head[4:])),
	}
	if read.key < 0 || read.key > keyMax || read.version < 0 || read.version > versionMax {
		return nil, false
	}
	clientID, rest, ok := nullableString(head[8:])
	if !ok {
		return read, true
	}
	read.clientID = knownClient
	if string(clientID) != knownClient { // does not allocate, unlike keeping it
		read.clientID = string(clientID)
	}
	read.silent = read.key == int16(kmsg.Produce) && wantsNoAnswer(rest, read.version)
	return read, true
}

// wantsNoAnswer tells whether a Produce request, after its client id, says acks=0.
func wantsNoAnswer(body []byte, version int16) bool {
	if version >= 9 {
		if len(body) < 4 || body[0] != 0 || body[1] != 0 { // tags, or a transactional id, which goes with acks=all only
			return false
		}
		return binary.BigEndian.Uint16(body[2:]) == 0
	}
	if version >= 3 {
		transactionalID, rest, ok := nullableString(body)
		if !ok || transactionalID != nil {
			return false
		}
		body = rest
	}
	return len(body) >= 2 && binary.BigEndian.Uint16(body) == 0
}

func nullableString(data []byte) (value, rest []byte, ok bool) {
	if len(data) < 2 {
		return nil, nil, false
	}
	size := int(int16(binary.BigEndian.Uint16(data)))
	if size < 0 {
		return nil, data[2:], true
	}
	if len(data) < 2+size {
		return nil, nil, false
	}
	return data[2 : 2+size], data[2+size:], true
}
