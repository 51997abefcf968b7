package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	requestSide  = "request"
	responseSide = "response"
)

// rule is what is done to some of the frames of a link. What it leaves open matches everything.
type rule struct {
	Do        string   `json:"do"`
	Side      string   `json:"side,omitempty"` // answers are always to requests
	Apis      []string `json:"apis"`
	ClientID  *string  `json:"client_id,omitempty"`
	Topic     *string  `json:"topic,omitempty"`
	TopicID   *string  `json:"topic_id,omitempty"`
	Partition *int32   `json:"partition,omitempty"`
	Times     *int64   `json:"times,omitempty"`
	Ms        int64    `json:"ms,omitempty"`
	ErrorCode int16    `json:"error_code,omitempty"`
}

// activeRule is a rule at work on one direction of a link.
type activeRule struct {
	rule
	keys    []int16
	side    string
	matched atomic.Int64
}

// partition is one that a request names: by the name of its topic or, in newer versions, by the topic's id.
type partition struct {
	topic, topicID string
	number         int32
}

// keyByName has Kafka's names in lower case, because the library spells some abbreviations its own way.
var keyByName = func() map[string]int16 {
	names := map[string]int16{"alterpartitionreassignments": int16(kmsg.AlterPartitionAssignments)}
	for key := range int16(kmsg.MaxKey + 1) {
		if kmsg.RequestForKey(key) != nil {
			names[strings.ToLower(kmsg.NameForKey(key))] = key
		}
	}
	return names
}()

func (r *rule) check() error {
	if r.Do != "answer" && r.Side != requestSide && r.Side != responseSide {
		return fmt.Errorf("a frame is a %s or a %s, not %q", requestSide, responseSide, r.Side)
	}
	if len(r.Apis) == 0 {
		return errors.New("a rule names at least one api")
	}
	if r.Times != nil && *r.Times < 1 {
		return fmt.Errorf("a rule acts at least once, not %d times", *r.Times)
	}
	for _, api := range r.Apis {
		key, ok := keyByName[strings.ToLower(api)]
		if !ok {
			return fmt.Errorf("Kafka has no api %q", api)
		}
		if r.namesPartitions() && !namesPartitions(key) {
			return fmt.Errorf("%s requests do not name partitions that a rule could match", api)
		}
		if r.Do == "answer" && !answerable(key) {
			return fmt.Errorf("the proxy cannot answer %s in the broker's place", api)
		}
	}
	switch r.Do {
	case "hold", "drop":
		return nil
	case "postpone":
		if 1 <= r.Ms && r.Ms <= delayMax {
			return nil
		}
	case "answer":
		if r.Side == "" && r.ErrorCode != 0 {
			return nil
		}
	}
	return fmt.Errorf("no such rule: %+v", *r)
}

// activate is for rules that were checked.
func activate(rules []rule) []*activeRule {
	active := make([]*activeRule, len(rules))
	for i, rule := range rules {
		active[i] = &activeRule{rule: rule, side: rule.Side}
		if rule.Do == "answer" {
			active[i].side = requestSide
		}
		for _, api := range rule.Apis {
			active[i].keys = append(active[i].keys, keyByName[strings.ToLower(api)])
		}
	}
	return active
}

func (r *rule) namesPartitions() bool {
	return r.Topic != nil || r.TopicID != nil || r.Partition != nil
}

// concerns tells what the beginning of a request is enough to tell.
func (r *activeRule) concerns(request *request) bool {
	return slices.Contains(r.keys, request.key) && (r.ClientID == nil || *r.ClientID == request.clientID)
}

// matches tells whether this is a frame to act upon, and counts it: it acts only so many times.
func (r *activeRule) matches(side string, request *request) bool {
	if r.side != side || !r.concerns(request) || (r.namesPartitions() && !slices.ContainsFunc(request.partitions, r.hits)) {
		return false
	}
	for {
		matched := r.matched.Load()
		if r.Times != nil && matched >= *r.Times {
			return false
		}
		if r.matched.CompareAndSwap(matched, matched+1) {
			return true
		}
	}
}

func (r *activeRule) hits(named partition) bool {
	if r.Partition != nil && *r.Partition != named.number {
		return false
	}
	if r.Topic == nil && r.TopicID == nil {
		return true
	}
	return (r.Topic != nil && *r.Topic == named.topic) || (r.TopicID != nil && *r.TopicID == named.topicID)
}
