package main

import (
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// parseRequest reads a whole request frame, after its length; nil if the library does not know this version.
func parseRequest(frame []byte) kmsg.Request {
	head, ok := readRequest(frame, "")
	if !ok {
		return nil
	}
	parsed := kmsg.RequestForKey(head.key)
	if parsed == nil || head.version > parsed.MaxVersion() {
		return nil
	}
	parsed.SetVersion(head.version)
	_, body, ok := nullableString(frame[8:])
	if !ok {
		return nil
	}
	if parsed.IsFlexible() {
		if len(body) == 0 || body[0] != 0 { // no client sends tags in this header
			return nil
		}
		body = body[1:]
	}
	if parsed.ReadFrom(body) != nil {
		return nil
	}
	return parsed
}

// namesPartitions tells whether requests of this kind name topics with partitions.
func namesPartitions(key int16) bool {
	return typeNamesPartitions(reflect.TypeOf(kmsg.RequestForKey(key)).Elem())
}

func typeNamesPartitions(kind reflect.Type) bool {
	if isTopic(kind) {
		return true
	}
	for i := range kind.NumField() {
		if field := kind.Field(i).Type; isListOfStructs(field) && typeNamesPartitions(field.Elem()) {
			return true
		}
	}
	return false
}

// isTopic knows the one shape in which all requests name partitions: a topic, by name or by id, and a list.
func isTopic(kind reflect.Type) bool {
	topic, ok := kind.FieldByName("Topic")
	if !ok || topic.Type.Kind() != reflect.String {
		return false
	}
	partitions, ok := kind.FieldByName("Partitions")
	if !ok || partitions.Type.Kind() != reflect.Slice {
		return false
	}
	element := partitions.Type.Elem()
	if element.Kind() == reflect.Struct {
		_, ok = element.FieldByName("Partition")
		return ok
	}
	return element.Kind() == reflect.Int32
}

func isListOfStructs(kind reflect.Type) bool {
	return kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct
}

// partitionsOf are all that a request names.
func partitionsOf(parsed kmsg.Request) []partition {
	return collect(reflect.ValueOf(parsed).Elem(), nil)
}

func collect(value reflect.Value, found []partition) []partition {
	if isTopic(value.Type()) {
		return collectTopic(value, found)
	}
	for i := range value.NumField() {
		list := value.Field(i)
		if !isListOfStructs(list.Type()) {
			continue
		}
		for j := range list.Len() {
			found = collect(list.Index(j), found)
		}
	}
	return found
}

func collectTopic(topic reflect.Value, found []partition) []partition {
	named := partition{topic: topic.FieldByName("Topic").String()}
	if id := topic.FieldByName("TopicID"); id.IsValid() && !id.IsZero() {
		named.topicID = uuid(id.Interface().([16]byte))
	}
	partitions := topic.FieldByName("Partitions")
	for i := range partitions.Len() {
		number := partitions.Index(i)
		if number.Kind() == reflect.Struct {
			number = number.FieldByName("Partition")
		}
		named.number = int32(number.Int())
		found = append(found, named)
	}
	return found
}

// uuid is how the harness writes topic ids.
func uuid(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
