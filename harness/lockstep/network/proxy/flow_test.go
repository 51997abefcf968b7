package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

func drawn(t *testing.T, link, towards string, seed uint64) []time.Duration {
	t.Helper()
	flow := new(Flow)
	asked := fmt.Sprintf(
		`{"link": %q, "towards": %q, "condition": {"kind": "delay", "ms": 100, "jitter_ms": 40, "seed": %d}}`,
		link, towards, seed,
	)
	if err := flow.UnmarshalJSON([]byte(asked)); err != nil {
		t.Fatal(err)
	}
	delays := make([]time.Duration, 1000)
	for i := range delays {
		delays[i] = flow.regime.Load().delay()
	}
	return delays
}

func TestTheSeedFixesTheJitterOfEachLinkAndDirection(t *testing.T) {
	first := drawn(t, "a", destination, 1)
	if !slices.Equal(first, drawn(t, "a", destination, 1)) {
		t.Error("the same seed has drawn two sequences")
	}
	for name, other := range map[string][]time.Duration{
		"link":      drawn(t, "b", destination, 1),
		"direction": drawn(t, "a", source, 1),
		"seed":      drawn(t, "a", destination, 2),
	} {
		if slices.Equal(first, other) {
			t.Errorf("another %s has drawn the same sequence", name)
		}
	}
}

func TestTheJitterFillsItsRangeAndNoMore(t *testing.T) {
	delays := drawn(t, "a", destination, 1)
	least, most := slices.Min(delays), slices.Max(delays)
	if least < 60*time.Millisecond || least > 62*time.Millisecond {
		t.Errorf("the least of 1000 delays of 100 ms +- 40 is %s", least)
	}
	if most > 140*time.Millisecond || most < 138*time.Millisecond {
		t.Errorf("the most of 1000 delays of 100 ms +- 40 is %s", most)
	}
}

func TestConditionsThatCannotBeAreRefused(t *testing.T) {
	for _, wrong := range []string{
		`{}`,
		`{"condition": {"kind": "cut"}}`,
		`{"condition": {"kind": "delay", "ms": 1, "jitter_ms": 2}}`,
		`{"condition": {"kind": "delay", "ms": 0}}`,
		`{"condition": {"kind": "delay", "ms": 86400001}}`,
		`{"condition": {"kind": "throttle"}}`,
		`{"condition": {"kind": "throttle", "kb_per_s": 10000001}}`,
	} {
		if err := new(Flow).UnmarshalJSON([]byte(wrong)); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}

func TestToxiproxyStillKeepsItsConnectionsWhereWeLook(t *testing.T) {
	logger := zerolog.Nop()
	server := toxiproxy.NewServer(nil, logger)
	if open := connectionsOf(toxiproxy.NewProxy(server, "a", "127.0.0.1:0", "127.0.0.1:1")); len(open) != 0 {
		t.Errorf("a new proxy has connections: %v", open)
	}
}
