package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	patience = 20 * time.Second
	silence  = 50 * time.Millisecond
)

// end is one direction of a connection, with a flow in it, as Toxiproxy runs it.
type end struct {
	input   chan *stream.StreamChunk
	output  chan *stream.StreamChunk
	stub    *toxics.ToxicStub
	wrapper *toxics.ToxicWrapper
	flow    *Flow
	got     []byte
}

// wire is a connection: what is sent to one side arrives at the other.
type wire struct {
	t           *testing.T
	there, back *end
}

func connect(t *testing.T) *wire {
	t.Helper()
	made := &wire{t: t, there: newEnd(t, destination), back: newEnd(t, source)}
	for _, end := range []*end{made.there, made.back} {
		end.stub.State = end.flow.NewState()
		go end.stub.Run(end.wrapper)
	}
	return made
}

func newEnd(t *testing.T, towards string) *end {
	t.Helper()
	input, output := make(chan *stream.StreamChunk), make(chan *stream.StreamChunk)
	flow := new(Flow)
	asked := fmt.Sprintf(`{"link": %q, "towards": %q, "condition": {"kind": "open"}}`, t.Name(), towards)
	if err := flow.UnmarshalJSON([]byte(asked)); err != nil {
		t.Fatal(err)
	}
	return &end{
		input: input, output: output, flow: flow,
		stub:    toxics.NewToxicStub(input, output),
		wrapper: &toxics.ToxicWrapper{Toxic: flow, Toxicity: 1},
	}
}

// impose changes the condition as Toxiproxy does.
func (w *wire) impose(condition string) {
	w.t.Helper()
	for _, end := range []*end{w.there, w.back} {
		if err := end.flow.UnmarshalJSON([]byte(`{"condition": ` + condition + `}`)); err != nil {
			w.t.Fatal(err)
		}
		if end.stub.InterruptToxic() {
			go end.stub.Run(end.wrapper)
		}
	}
}

func (w *wire) rules(rules string) {
	w.t.Helper()
	w.impose(`{"kind": "frames", "rules": [` + rules + `]}`)
}

func (w *wire) mend() {
	w.t.Helper()
	w.impose(`{"kind": "open"}`)
}

// send does not wait until anything has arrived.
func (e *end) send(data []byte) {
	go e.feed(data, len(data))
}

func (e *end) feed(data []byte, piece int) {
	for len(data) > 0 {
		size := min(piece, len(data))
		e.input <- &stream.StreamChunk{Data: bytes.Clone(data[:size]), Timestamp: time.Now()}
		data = data[size:]
	}
}

func (w *wire) expect(e *end, wanted []byte) {
	w.t.Helper()
	for len(e.got) < len(wanted) {
		select {
		case chunk := <-e.output:
			if chunk == nil {
				w.t.Fatalf("it ended after %x instead of %x", e.got, wanted)
			}
			e.got = append(e.got, chunk.Data...)
		case <-time.After(patience):
			w.t.Fatalf("only %x came of %x", e.got, wanted)
		}
	}
	if !bytes.Equal(e.got[:len(wanted)], wanted) {
		w.t.Fatalf("%x came instead of %x", e.got, wanted)
	}
	e.got = e.got[len(wanted):]
}

func (w *wire) expectSilence(e *end) {
	w.t.Helper()
	select {
	case chunk := <-e.output:
		w.t.Fatalf("%v came", chunk)
	case <-time.After(silence):
	}
}

func (w *wire) expectEnd(e *end) {
	w.t.Helper()
	select {
	case chunk := <-e.output:
		if chunk != nil {
			w.t.Fatalf("%x came instead of the end", chunk.Data)
		}
	case <-time.After(patience):
		w.t.Fatal("it did not end")
	}
}

func (e *end) matched(t *testing.T) []int64 {
	t.Helper()
	data, err := e.flow.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var read attributes
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return read.Matched
}

func frameOf(request kmsg.Request, version int16, correlation int32) []byte {
	request.SetVersion(version)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester")).AppendRequest(nil, request, correlation)
}

func produce(version int16, correlation int32, acks int16, topic string, number int32) []byte {
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition, partition.Records = number, bytes.Repeat([]byte("records"), 100)
	named := kmsg.NewProduceRequestTopic()
	named.Topic, named.TopicID = topic, topicID(topic)
	named.Partitions = append(named.Partitions, partition)
	request := kmsg.NewProduceRequest()
	request.Acks = acks
	request.Topics = append(request.Topics, named)
	return frameOf(&request, version, correlation)
}

func topicID(topic string) (id [16]byte) {
	copy(id[:], topic)
	return id
}

func heartbeat(correlation int32) []byte {
	request := kmsg.NewHeartbeatRequest()
	return frameOf(&request, 3, correlation)
}

func response(correlation int32, size int) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+size))
	frame = binary.BigEndian.AppendUint32(frame, uint32(correlation))
	return append(frame, make([]byte, size)...)
}

const holdProduceRequests = `{"do": "hold", "side": "request", "apis": ["Produce"]}`

func TestFramesAreFollowedAcrossAllBorders(t *testing.T) {
	for _, piece := range []int{1, 2, 3, 5, 11, 13, 97, 511, 600, 5000} {
		there, back := conversationOf(40)
		wire := connect(t)
		go wire.there.feed(there, piece)
		wire.expect(wire.there, there)
		go wire.back.feed(back, piece)
		wire.expect(wire.back, back)
		// Only a frame that begins where we think it does can be matched.
		wire.rules(holdProduceRequests)
		wire.there.send(heartbeat(1000))
		wire.expect(wire.there, heartbeat(1000))
		wire.there.send(produce(9, 1001, 1, "t", 0))
		wire.expectSilence(wire.there)
		if matched := wire.there.matched(t); matched[0] != 1 {
			t.Fatalf("pieces of %d: %v frames matched", piece, matched)
		}
		wire.mend()
		wire.expect(wire.there, produce(9, 1001, 1, "t", 0))
	}
}

// conversationOf requests, some of which want no answer, and their responses.
func conversationOf(count int32) (there, back []byte) {
	for i := range count {
		switch i % 4 {
		case 0:
			there = append(there, produce(9, i, 0, "t", i)...) // acks=0: nothing comes back
			continue
		case 1:
			there = append(there, produce(3+int16(i%8), i, -1, "t", i)...)
		default:
			there = append(there, heartbeat(i)...)
		}
		back = append(back, response(i, int(i*37)%900)...)
	}
	return there, back
}

func TestNothingIsLostWhileRulesComeAndGo(t *testing.T) {
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 1))
		there, back := conversationOf(200)
		wire := connect(t)
		for _, way := range []struct {
			end  *end
			data []byte
		}{{wire.there, there}, {wire.back, back}} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				wire.expect(way.end, way.data)
			}()
			for data := way.data; len(data) > 0; {
				size := min(1+draw.IntN(300), len(data))
				way.end.feed(data[:size], size)
				data = data[size:]
				switch draw.IntN(8) {
				case 0:
					wire.rules(`{"do": "hold", "side": "request", "apis": ["EndTxn"]},
						{"do": "hold", "side": "response", "apis": ["Produce"], "topic": "t", "partition": 4711}`)
				case 1:
					wire.rules(`{"do": "postpone", "side": "request", "apis": ["Produce"], "ms": 1}`)
				case 2:
					wire.mend()
				}
			}
			<-done
		}
		if wire.there.stub.State.(*connection).talk.isForeign() {
			t.Fatal("Kafka's protocol was not recognised any more")
		}
	}
}

func TestAHeldRequestHoldsWhatIsBehindItUntilTheLinkIsMended(t *testing.T) {
	wire := connect(t)
	wire.rules(holdProduceRequests)
	first, held, behind := heartbeat(1), produce(9, 2, 1, "t", 0), heartbeat(3)
	wire.there.send(bytes.Join([][]byte{first, held, behind}, nil))
	wire.expect(wire.there, first)
	wire.expectSilence(wire.there)
	wire.back.send(response(1, 10))
	wire.expect(wire.back, response(1, 10))
	wire.mend()
	wire.expect(wire.there, append(held, behind...))
}

func TestAHeldResponseHoldsWhatIsBehindItButNoRequest(t *testing.T) {
	wire := connect(t)
	requests := bytes.Join([][]byte{heartbeat(1), produce(9, 2, 1, "t", 0)}, nil)
	wire.there.send(requests) // before the rule: a response is matched even so
	wire.expect(wire.there, requests)
	wire.rules(`{"do": "hold", "side": "response", "apis": ["Produce"], "client_id": "tester"}`)
	wire.there.send(heartbeat(3))
	wire.expect(wire.there, heartbeat(3))
	wire.back.send(bytes.Join([][]byte{response(1, 5), response(2, 6), response(3, 7)}, nil))
	wire.expect(wire.back, response(1, 5))
	wire.expectSilence(wire.back)
	if matched := wire.back.matched(t); matched[0] != 1 {
		t.Errorf("%v responses matched", matched)
	}
	wire.mend()
	wire.expect(wire.back, append(response(2, 6), response(3, 7)...))
}

func TestAHeldRequestOfAClientThatIsGoneArrivesAfterwards(t *testing.T) {
	wire := connect(t)
	wire.rules(holdProduceRequests)
	held := produce(9, 2, 1, "t", 0)
	go func() {
		wire.there.feed(held, 100)
		close(wire.there.input)
	}()
	wire.expectSilence(wire.there)
	wire.mend()
	wire.expect(wire.there, held)
	wire.expectEnd(wire.there)
}

func TestADroppedFrameEndsItsConnectionAtBothEnds(t *testing.T) {
	for _, side := range []string{requestSide, responseSide} {
		wire := connect(t)
		wire.rules(`{"do": "drop", "side": "` + side + `", "apis": ["Produce"]}`)
		request := produce(9, 2, 1, "t", 0)
		wire.there.send(append(heartbeat(1), request...))
		wire.expect(wire.there, heartbeat(1))
		if side == responseSide {
			wire.expect(wire.there, request)
			wire.back.send(append(response(1, 3), response(2, 3)...))
			wire.expect(wire.back, response(1, 3))
		}
		wire.expectEnd(wire.there)
		wire.expectEnd(wire.back)
	}
}

func TestAPostponedFrameComesLaterAndNothingOvertakesIt(t *testing.T) {
	wire := connect(t)
	wire.rules(`{"do": "postpone", "side": "request", "apis": ["Produce"], "ms": 200}`)
	frames := bytes.Join([][]byte{heartbeat(1), produce(9, 2, 1, "t", 0), heartbeat(3), produce(9, 4, 1, "t", 0)}, nil)
	started := time.Now()
	wire.there.send(frames)
	wire.expect(wire.there, heartbeat(1))
	wire.expect(wire.there, frames[len(heartbeat(1)):])
	if passed := time.Since(started); passed < 200*time.Millisecond {
		t.Errorf("it took %s", passed)
	}
}

func TestAnAnswerOfOursWaitsForItsTurn(t *testing.T) {
	for _, piece := range []int{1, 7, 5000} {
		wire := connect(t)
		wire.rules(`{"do": "answer", "apis": ["Heartbeat"], "error_code": 27, "times": 2}`)
		before, after := produce(9, 1, 1, "t", 0), produce(9, 4, 1, "t", 0)
		go wire.there.feed(bytes.Join([][]byte{before, heartbeat(2), heartbeat(3), after}, nil), piece)
		wire.expect(wire.there, append(before, after...)) // the broker sees nothing of the two
		wire.expectSilence(wire.back)
		wire.mend() // what is owed stays owed
		ours := []byte{0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 27, 0, 0, 0, 10, 0, 0, 0, 3, 0, 0, 0, 0, 0, 27}
		go wire.back.feed(append(response(1, 50), response(4, 60)...), piece)
		wire.expect(wire.back, bytes.Join([][]byte{response(1, 50), ours, response(4, 60)}, nil))
	}
}

func TestAnAnswerComesAtOnceWhenNobodyElseWaits(t *testing.T) {
	wire := connect(t)
	wire.rules(`{"do": "answer", "apis": ["Produce"], "error_code": 19}`)
	for correlation := range int32(3) {
		wire.there.send(produce(3, correlation, -1, "t", 7))
		wire.expect(wire.back, unhex(t, fmt.Sprintf(
			"00000029 %08x 00000001 0001 74 00000001 00000007 0013 ffffffffffffffff ffffffffffffffff 00000000", correlation,
		)))
	}
	wire.expectSilence(wire.there)
}

func TestWhoWantsNoAnswerIsToldOfAnErrorByTheEnd(t *testing.T) {
	wire := connect(t)
	wire.rules(`{"do": "answer", "apis": ["Produce"], "error_code": 19}`)
	wire.there.send(produce(9, 1, 0, "t", 0))
	wire.expectEnd(wire.there)
	wire.expectEnd(wire.back)
}

func TestARuleActsOnlyOnWhatItNames(t *testing.T) {
	for _, test := range []struct {
		name, rule string
		frame      []byte
		matches    bool
	}{
		{"topic and partition", `"topic": "a", "partition": 1`, produce(9, 1, 1, "a", 1), true},
		{"another partition", `"topic": "a", "partition": 1`, produce(9, 1, 1, "a", 2), false},
		{"another topic", `"topic": "a", "partition": 1`, produce(9, 1, 1, "b", 1), false},
		{"an old version", `"topic": "a", "partition": 1`, produce(3, 1, 1, "a", 1), true},
		{"any topic", `"partition": 1`, produce(9, 1, 1, "b", 1), true},
		{"a topic id", `"topic_id": "61000000-0000-0000-0000-000000000000"`, produce(13, 1, 1, "a", 1), true},
		{"another topic id", `"topic_id": "61000000-0000-0000-0000-000000000000"`, produce(13, 1, 1, "b", 1), false},
		{"a name where ids are", `"topic": "a"`, produce(13, 1, 1, "a", 1), false},
		{"a client", `"client_id": "tester"`, produce(9, 1, 1, "a", 1), true},
		{"another client", `"client_id": "other"`, produce(9, 1, 1, "a", 1), false},
		{"a version that no broker supports yet", `"topic": "a"`, laterVersion(produce(9, 1, 1, "a", 1)), false},
	} {
		wire := connect(t)
		wire.rules(`{"do": "hold", "side": "request", "apis": ["Produce"], ` + test.rule + `}`)
		wire.there.send(test.frame)
		if test.matches {
			wire.expectSilence(wire.there)
			wire.mend()
		}
		wire.expect(wire.there, test.frame)
	}
}

func laterVersion(frame []byte) []byte {
	binary.BigEndian.PutUint16(frame[6:], 99)
	return frame
}

func TestAResponseIsFoundByThePartitionThatItsRequestNames(t *testing.T) {
	wire := connect(t)
	wire.rules(`{"do": "hold", "side": "response", "apis": ["Produce"], "topic": "a", "partition": 1}`)
	requests := bytes.Join([][]byte{produce(9, 1, 1, "a", 0), produce(9, 2, 1, "b", 1), produce(9, 3, 1, "a", 1)}, nil)
	wire.there.send(requests)
	wire.expect(wire.there, requests)
	wire.back.send(bytes.Join([][]byte{response(1, 1), response(2, 1), response(3, 1)}, nil))
	wire.expect(wire.back, append(response(1, 1), response(2, 1)...))
	wire.expectSilence(wire.back)
}

func TestARuleActsOnlySoManyTimes(t *testing.T) {
	wire := connect(t)
	wire.rules(`{"do": "answer", "apis": ["Heartbeat"], "error_code": 27, "times": 1}`)
	wire.there.send(append(heartbeat(1), heartbeat(2)...))
	wire.expect(wire.there, heartbeat(2))
	if matched := wire.there.matched(t); matched[0] != 1 {
		t.Errorf("%v frames matched", matched)
	}
}

func TestWhatIsNotKafkaPassesUntouched(t *testing.T) {
	hello := unhex(t, "160301020001 0001fc0303")
	zooKeeper := unhex(t, "0000002d 00000000 0000000000000000 00001770 0000000000000000 00000010"+
		"00000000000000000000000000000000 00 0000000e 00000001 0000000c 00000002 2f61")
	for _, words := range [][]byte{
		hello, zooKeeper, []byte("GET / HTTP/1.1\r\n\r\n"), make([]byte, 100),
	} {
		wire := connect(t)
		wire.rules(`{"do": "drop", "side": "request", "apis": ["Fetch", "Heartbeat", "EndTxn"]}`)
		for _, end := range []*end{wire.there, wire.back} {
			end.send(words)
			wire.expect(end, words)
		}
	}
}

func TestEveryAnswerIsAResponseOfTheRightVersion(t *testing.T) {
	for key := range answers {
		for version := range kmsg.RequestForKey(int16(key)).MaxVersion() + 1 {
			asked := filled(int16(key), version)
			frame := answer(asked, 77, 14)
			if int(binary.BigEndian.Uint32(frame)) != len(frame)-4 || binary.BigEndian.Uint32(frame[4:]) != 77 {
				t.Fatalf("%s %d begins with %x", key.Name(), version, frame[:8])
			}
			body := frame[8:]
			read := asked.ResponseKind()
			if read.IsFlexible() {
				body = body[1:]
			}
			if err := read.ReadFrom(body); err != nil {
				t.Errorf("%s %d: %v", key.Name(), version, err)
			}
			if codes := bytes.Count(frame, []byte{0, 14}); codes == 0 {
				t.Errorf("%s %d has no error: %x", key.Name(), version, frame)
			}
		}
	}
}

// filled is a request that asks for something.
func filled(key, version int16) kmsg.Request {
	asked := kmsg.RequestForKey(key)
	asked.SetVersion(version)
	switch asked := asked.(type) {
	case *kmsg.ProduceRequest:
		return parseRequest(produce(version, 1, 1, "topic", 3)[lengthSize:])
	case *kmsg.FetchRequest:
		asked.Topics = []kmsg.FetchRequestTopic{{Topic: "topic", Partitions: make([]kmsg.FetchRequestTopicPartition, 2)}}
	case *kmsg.ListOffsetsRequest:
		asked.Topics = []kmsg.ListOffsetsRequestTopic{
			{Topic: "topic", Partitions: make([]kmsg.ListOffsetsRequestTopicPartition, 2)},
		}
	case *kmsg.OffsetCommitRequest:
		asked.Topics = []kmsg.OffsetCommitRequestTopic{
			{Topic: "topic", Partitions: make([]kmsg.OffsetCommitRequestTopicPartition, 2)},
		}
	case *kmsg.TxnOffsetCommitRequest:
		asked.Topics = []kmsg.TxnOffsetCommitRequestTopic{
			{Topic: "topic", Partitions: make([]kmsg.TxnOffsetCommitRequestTopicPartition, 2)},
		}
	case *kmsg.FindCoordinatorRequest:
		asked.CoordinatorKeys = []string{"group"}
	case *kmsg.AddPartitionsToTxnRequest:
		asked.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "topic", Partitions: []int32{1}}}
		asked.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{
			{Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "topic", Partitions: []int32{1}}}},
		}
	}
	return asked
}

func TestAnswersByteForByte(t *testing.T) {
	for _, test := range []struct {
		key     kmsg.Key
		version int16
		wanted  string
	}{
		{kmsg.EndTxn, 1, "0000000a 00000007 00000000 000e"},
		{kmsg.EndTxn, 3, "0000000c 00000007 00 00000000 000e 00"},
		{kmsg.EndTxn, 5, "00000016 00000007 00 00000000 000e ffffffffffffffff ffff 00"},
		{kmsg.Heartbeat, 0, "00000006 00000007 000e"},
		{kmsg.InitProducerID, 2, "00000016 00000007 00 00000000 000e ffffffffffffffff ffff 00"},
		{kmsg.FindCoordinator, 0, "00000010 00000007 000e ffffffff 0000 ffffffff"},
		{kmsg.FindCoordinator, 4, "0000001e 00000007 00 00000000 02 0667726f7570 ffffffff 01 ffffffff 000e 00 00 00"},
		{kmsg.Produce, 0, "00000021 00000007 00000001 0005 746f706963 00000001 00000003 000e ffffffffffffffff"},
		{kmsg.Produce, 9, "00000034 00000007 00 02 06 746f706963 02 00000003 000e ffffffffffffffff ffffffffffffffff" +
			"ffffffffffffffff 01 00 00 00 00000000 00"},
		{kmsg.AddPartitionsToTxn, 0, "0000001d 00000007 00000000 00000001 0005 746f706963 00000001 00000001 000e"},
	} {
		got, wanted := answer(filled(int16(test.key), test.version), 7, 14), unhex(t, test.wanted)
		if !bytes.Equal(got, wanted) {
			t.Errorf("%s %d:\n%x instead of\n%x", test.key.Name(), test.version, got, wanted)
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(text), []byte(" "), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRulesThatCannotBeAreRefused(t *testing.T) {
	for _, wrong := range []string{
		``,
		`{"do": "hold", "side": "request", "apis": []}`,
		`{"do": "hold", "side": "request", "apis": ["Consume"]}`,
		`{"do": "hold", "apis": ["Produce"]}`,
		`{"do": "hold", "side": "request", "apis": ["Heartbeat"], "partition": 0}`,
		`{"do": "hold", "side": "request", "apis": ["Produce"], "times": 0}`,
		`{"do": "postpone", "side": "request", "apis": ["Produce"]}`,
		`{"do": "postpone", "side": "request", "apis": ["Produce"], "ms": 86400001}`,
		`{"do": "answer", "apis": ["Metadata"], "error_code": 1}`,
		`{"do": "answer", "apis": ["Produce"]}`,
		`{"do": "answer", "side": "response", "apis": ["Produce"], "error_code": 1}`,
		`{"do": "lose", "side": "request", "apis": ["Produce"]}`,
	} {
		if new(Flow).UnmarshalJSON([]byte(`{"condition": {"kind": "frames", "rules": [`+wrong+`]}}`)) == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}

// BenchmarkPassing is what framing costs in the bytes of an open link: frames of that many bytes, in chunks of 32 KB.
func BenchmarkPassing(b *testing.B) {
	for _, size := range []int{200, 1000, 16_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmark(b, size, `{"kind": "open"}`) })
	}
}

// BenchmarkSifting is the same while a rule looks for something else.
func BenchmarkSifting(b *testing.B) {
	for _, size := range []int{200, 1000, 16_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchmark(b, size, `{"kind": "frames", "rules": [{"do": "hold", "side": "request", "apis": ["EndTxn"]}]}`)
		})
	}
}

func benchmark(b *testing.B, size int, condition string) {
	flow := new(Flow)
	asked := fmt.Sprintf(`{"link": "a", "towards": %q, "condition": %s}`, destination, condition)
	if err := flow.UnmarshalJSON([]byte(asked)); err != nil {
		b.Fatal(err)
	}
	request := kmsg.NewProduceRequest()
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = make([]byte, size)
	request.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{partition}}}
	request.Acks = 0 // so that nothing waits for responses
	one := frameOf(&request, 9, 1)
	frames := bytes.Repeat(one, max(1, 8<<20/len(one)))
	conn, regime := flow.NewState().(*connection), flow.regime.Load()
	b.SetBytes(int64(len(frames)))
	for b.Loop() {
		for data := frames; len(data) > 0; {
			chunk := min(32<<10, len(data))
			conn.receive(regime, &stream.StreamChunk{Data: data[:chunk]})
			conn.waiting = conn.waiting[:0]
			data = data[chunk:]
		}
	}
	if conn.talk.isForeign() {
		b.Fatal("Kafka's protocol was not recognised any more")
	}
}
