package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

const (
	flowType    = "flow"
	destination = "destination"
	source      = "source"

	// How many chunks (each up to 32 KB) may be under way on one delayed connection. Everywhere else it is one: what is
	// not read stays with the sender, as it would without a proxy.
	delayedMax = 1024

	// A throttled chunk is passed on in pieces of this much time, so that a large one does not look like silence.
	throttlePiece = 100 * time.Millisecond

	// More than any test waits for, in ms, and than any proxy passes, in kB/s; both far from overflowing.
	delayMax    = 86_400_000
	throttleMax = 10_000_000
)

// Flow is one direction of a link: a toxic that is there from the first byte to the last, counts what it passes on and
// does what the link's condition asks.
//
// It is one toxic whose condition changes, not one toxic per condition that comes and goes: nothing is ever dropped
// between two of them, and changing the condition never waits for a peer that has stopped reading.
type Flow struct {
	link    string
	towards string
	passed  atomic.Int64
	regime  atomic.Pointer[regime]
}

// condition is what the harness asks for, in its own words; only the fields of its kind mean something.
type condition struct {
	Kind     string `json:"kind"`
	Ms       int64  `json:"ms,omitempty"`
	JitterMs int64  `json:"jitter_ms,omitempty"`
	Seed     uint64 `json:"seed,omitempty"`
	KbPerS   int64  `json:"kb_per_s,omitempty"`
	Rules    []rule `json:"rules,omitempty"`
}

// regime is a condition at work; all connections of the link share it.
type regime struct {
	condition
	rules []*activeRule
	mutex sync.Mutex
	draws *rand.PCG // delay: one sequence for the link and direction
	free  time.Time // throttle: when what was passed on before is through
}

// attributes are what the API reads and writes.
type attributes struct {
	Link      string     `json:"link"`
	Towards   string     `json:"towards"`
	Passed    int64      `json:"passed"`
	Condition *condition `json:"condition"`
	Matched   []int64    `json:"matched,omitempty"` // how often each rule has acted in this direction
}

// connection is the state of one connection in this direction; it outlives changes of the condition.
type connection struct {
	framing
	towards string
	talk    *conversation
	waiting []chunk
	ended   bool // the sender has closed: so do we, once nothing waits any more
}

type chunk struct {
	*stream.StreamChunk
	due time.Time
}

func addFlows(proxy *toxiproxy.Proxy) error {
	known.Store(proxy.Name, proxy)
	added := false
	for towards, direction := range map[string]string{destination: "upstream", source: "downstream"} {
		if proxy.Toxics.GetToxic(towards) != nil {
			continue
		}
		toxic, err := json.Marshal(map[string]any{
			"name":       towards,
			"type":       flowType,
			"stream":     direction,
			"attributes": map[string]any{"link": proxy.Name, "towards": towards, "condition": condition{Kind: "open"}},
		})
		if err != nil {
			return err
		}
		if _, err := proxy.Toxics.AddToxicJson(bytes.NewReader(toxic)); err != nil {
			return err
		}
		added = true
	}
	if added {
		reset(proxy.Name) // a connection accepted before this has two flows that do not know each other
	}
	return nil
}

func (f *Flow) MarshalJSON() ([]byte, error) {
	regime := f.regime.Load()
	matched := make([]int64, len(regime.rules))
	for i, rule := range regime.rules {
		matched[i] = rule.matched.Load()
	}
	return json.Marshal(attributes{f.link, f.towards, f.passed.Load(), &regime.condition, matched})
}

func (f *Flow) UnmarshalJSON(data []byte) error {
	var asked attributes
	if err := json.Unmarshal(data, &asked); err != nil {
		return err
	}
	if f.regime.Load() == nil { // it is being made
		f.link, f.towards = asked.Link, asked.Towards
	}
	if asked.Condition == nil {
		return errors.New("a flow has a condition")
	}
	if err := asked.Condition.check(); err != nil {
		return err
	}
	f.regime.Store(f.newRegime(*asked.Condition))
	if asked.Condition.Kind == "reset" {
		reset(f.link)
	}
	return nil
}

func (c *condition) check() error {
	switch c.Kind {
	case "open", "black-hole", "one-way", "reset", "half-open":
		return nil
	case "delay":
		if 1 <= c.Ms && c.Ms <= delayMax && 0 <= c.JitterMs && c.JitterMs <= c.Ms {
			return nil
		}
	case "throttle":
		if 1 <= c.KbPerS && c.KbPerS <= throttleMax {
			return nil
		}
	case "frames":
		for i := range c.Rules {
			if err := c.Rules[i].check(); err != nil {
				return err
			}
		}
		if len(c.Rules) > 0 {
			return nil
		}
	}
	return fmt.Errorf("no such condition: %+v", *c)
}

func (f *Flow) newRegime(asked condition) *regime {
	direction := fnv.New64a()
	direction.Write([]byte(f.link + " " + f.towards))
	return &regime{condition: asked, rules: activate(asked.Rules), draws: rand.NewPCG(asked.Seed, direction.Sum64())}
}

func (f *Flow) NewState() interface{} {
	return &connection{towards: f.towards, talk: meet(f.link, f.towards)}
}

// Pipe carries one connection until it ends or its condition changes. By Toxiproxy's rules it may return only when it
// was interrupted or has closed its stub.
func (f *Flow) Pipe(stub *toxics.ToxicStub) {
	conn, regime := stub.State.(*connection), f.regime.Load()
	switch {
	case regime.silences(f.towards):
		// Nothing is read, not even that the sender has closed. What waits is delivered once the link is mended, as TCP
		// would do after a partition: no hole, no lie.
		<-stub.Interrupt
	case regime.Kind == "reset":
		reset(f.link)
		discard(stub)
	default:
		f.carry(stub, conn, regime)
	}
}

// silences tells whether nothing at all gets through in that direction.
func (r *regime) silences(towards string) bool {
	return r.Kind == "black-hole" || (r.Kind == "one-way" && towards == source)
}

// hidesEnd tells whether the receiver is not told that the sender has closed.
func (r *regime) hidesEnd(towards string) bool {
	return r.Kind == "half-open" && towards == source
}

func (f *Flow) carry(stub *toxics.ToxicStub, conn *connection, regime *regime) {
	conn.hurry()
	conn.release(regime)
	for {
		if conn.finished() && !regime.hidesEnd(f.towards) {
			stub.Close()
			drain(stub)
			return
		}
		var input <-chan *stream.StreamChunk
		var answered <-chan struct{}
		if regime.takes(conn) {
			input = stub.Input
			if f.towards == source {
				answered = conn.talk.answered
			}
		}
		var broken <-chan struct{}
		if !conn.ended {
			broken = conn.talk.broken
		}
		var first *stream.StreamChunk
		var output chan<- *stream.StreamChunk
		var timer <-chan time.Time
		if len(conn.waiting) > 0 {
			first = conn.waiting[0].StreamChunk
			if wait := conn.waiting[0].wait(); wait > 0 {
				timer = time.After(wait)
			} else {
				output = stub.Output
			}
		}
		select {
		case <-stub.Interrupt:
			return
		case received := <-input:
			if received == nil {
				conn.unkeep()
				conn.flush(regime)
				conn.ended = true
			} else {
				conn.receive(regime, received)
			}
		case <-answered:
			conn.inject()
			conn.flush(regime)
		case <-broken:
			conn.breakOff()
		case output <- first:
			f.passed.Add(int64(len(first.Data)))
			conn.waiting = append(conn.waiting[:0], conn.waiting[1:]...)
		case <-timer:
		}
	}
}

// hurry lets go at once what an earlier condition has kept.
func (c *connection) hurry() {
	for i := range c.waiting {
		c.waiting[i].due = time.Time{}
	}
}

func (c *connection) finished() bool {
	return c.ended && !c.held && len(c.waiting) == 0
}

func (c chunk) wait() time.Duration {
	if c.due.IsZero() {
		return 0
	}
	return time.Until(c.due)
}

// takes tells whether more may be read from the sender.
func (r *regime) takes(conn *connection) bool {
	switch {
	case conn.ended || conn.held:
		return false
	case len(conn.waiting) == 0:
		return true
	case r.Kind == "delay", r.Kind == "frames" && conn.waiting[0].wait() > 0:
		return len(conn.waiting) < delayedMax
	default:
		return false
	}
}

// enqueue lets a chunk that was just received wait until it may be passed on.
func (r *regime) enqueue(conn *connection, received *stream.StreamChunk) {
	switch r.Kind {
	case "delay":
		conn.waiting = append(conn.waiting, chunk{received, received.Timestamp.Add(r.delay())})
	case "throttle":
		r.throttle(conn, received)
	default:
		conn.waiting = append(conn.waiting, chunk{received, time.Time{}})
	}
}

// delay is drawn anew for each chunk; a chunk never overtakes another.
func (r *regime) delay() time.Duration {
	delay := time.Duration(r.Ms) * time.Millisecond
	jitter := time.Duration(r.JitterMs) * time.Millisecond
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return delay - jitter + time.Duration(r.draws.Uint64()%uint64(2*jitter+1))
}

// throttle books time on the link for a chunk, behind what other connections have booked.
func (r *regime) throttle(conn *connection, received *stream.StreamChunk) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if now := time.Now(); r.free.Before(now) {
		r.free = now
	}
	perSecond := time.Duration(1000 * r.KbPerS)
	pieceMax := int(throttlePiece * perSecond / time.Second)
	for data := received.Data; len(data) > 0; {
		size := min(pieceMax, len(data))
		r.free = r.free.Add(time.Duration(size) * time.Second / perSecond)
		piece := &stream.StreamChunk{Data: data[:size], Timestamp: received.Timestamp}
		conn.waiting = append(conn.waiting, chunk{piece, r.free})
		data = data[size:]
	}
}

// drain discards input after the flow has closed, so that the sender's goroutine does not block.
func drain(stub *toxics.ToxicStub) {
	for range stub.Input {
	}
}

// discard waits for the end of a connection that was reset.
func discard(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case received := <-stub.Input:
			if received == nil {
				stub.Close()
				return
			}
		}
	}
}
