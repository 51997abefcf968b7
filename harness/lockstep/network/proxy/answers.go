package main

import (
	"encoding/binary"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// none is how brokers fill in an offset, an epoch, a node or a port that an error leaves open.
const none = -1

// answers make the response that a broker gives when everything that a request asks for has the same error.
var answers = map[kmsg.Key]func(request kmsg.Request, code int16) kmsg.Response{
	kmsg.Produce:                answerProduce,
	kmsg.Fetch:                  answerFetch,
	kmsg.ListOffsets:            answerListOffsets,
	kmsg.OffsetCommit:           answerOffsetCommit,
	kmsg.TxnOffsetCommit:        answerTxnOffsetCommit,
	kmsg.FindCoordinator:        answerFindCoordinator,
	kmsg.AddPartitionsToTxn:     answerAddPartitionsToTxn,
	kmsg.AddOffsetsToTxn:        answerAtTop,
	kmsg.EndTxn:                 answerAtTop,
	kmsg.InitProducerID:         answerInitProducerID,
	kmsg.JoinGroup:              answerAtTop,
	kmsg.SyncGroup:              answerAtTop,
	kmsg.LeaveGroup:             answerAtTop,
	kmsg.Heartbeat:              answerAtTop,
	kmsg.ConsumerGroupHeartbeat: answerAtTop,
}

func answerable(key int16) bool {
	return answers[kmsg.Key(key)] != nil
}

// answer is the whole frame of an error response, in the version of the request.
func answer(parsed kmsg.Request, correlation int32, code int16) []byte {
	response := answers[kmsg.Key(parsed.Key())](parsed, code)
	frame := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(correlation))
	if response.IsFlexible() {
		frame = append(frame, 0) // no tags in the header
	}
	frame = response.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// answerAtTop is for responses with one error code, for the request as a whole.
func answerAtTop(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind()
	reflect.ValueOf(response).Elem().FieldByName("ErrorCode").SetInt(int64(code))
	return response
}

func answerInitProducerID(request kmsg.Request, code int16) kmsg.Response {
	response := answerAtTop(request, code).(*kmsg.InitProducerIDResponse)
	response.ProducerID, response.ProducerEpoch = none, none
	return response
}

func answerProduce(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.ProduceResponse)
	for _, asked := range request.(*kmsg.ProduceRequest).Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, each := range asked.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode, partition.BaseOffset = each.Partition, code, none
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// answerFetch closes the fetch session, if there was one. A request that names no partition, because nothing of its
// session has changed, has the error as a whole.
func answerFetch(request kmsg.Request, code int16) kmsg.Response {
	asked := request.(*kmsg.FetchRequest)
	if len(asked.Topics) == 0 {
		return answerAtTop(request, code)
	}
	response := request.ResponseKind().(*kmsg.FetchResponse)
	for _, asked := range asked.Topics {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, each := range asked.Partitions {
			partition := kmsg.NewFetchResponseTopicPartition()
			partition.Partition, partition.ErrorCode, partition.HighWatermark = each.Partition, code, none
			partition.RecordBatches = []byte{}
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func answerListOffsets(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, asked := range request.(*kmsg.ListOffsetsRequest).Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = asked.Topic
		for _, each := range asked.Partitions {
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.ErrorCode = each.Partition, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func answerOffsetCommit(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, asked := range request.(*kmsg.OffsetCommitRequest).Topics {
		topic := kmsg.NewOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, each := range asked.Partitions {
			partition := kmsg.NewOffsetCommitResponseTopicPartition()
			partition.Partition, partition.ErrorCode = each.Partition, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func answerTxnOffsetCommit(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	for _, asked := range request.(*kmsg.TxnOffsetCommitRequest).Topics {
		topic := kmsg.NewTxnOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, each := range asked.Partitions {
			partition := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			partition.Partition, partition.ErrorCode = each.Partition, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// answerFindCoordinator knows both shapes: up to version 3 a request asks for one coordinator, from 4 on for several.
func answerFindCoordinator(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.FindCoordinatorResponse)
	response.ErrorCode, response.NodeID, response.Port = code, none, none
	for _, key := range request.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
		coordinator := kmsg.NewFindCoordinatorResponseCoordinator()
		coordinator.Key, coordinator.ErrorCode, coordinator.NodeID, coordinator.Port = key, code, none, none
		response.Coordinators = append(response.Coordinators, coordinator)
	}
	return response
}

// answerAddPartitionsToTxn knows both shapes: up to version 3 a client asks for one transaction, from 4 on brokers ask
// each other for several.
func answerAddPartitionsToTxn(request kmsg.Request, code int16) kmsg.Response {
	response := request.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	asked := request.(*kmsg.AddPartitionsToTxnRequest)
	for _, asked := range asked.Topics {
		topic := kmsg.NewAddPartitionsToTxnResponseTopic()
		topic.Topic = asked.Topic
		for _, number := range asked.Partitions {
			partition := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			partition.Partition, partition.ErrorCode = number, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	for _, asked := range asked.Transactions {
		transaction := kmsg.NewAddPartitionsToTxnResponseTransaction()
		transaction.TransactionalID = asked.TransactionalID
		for _, asked := range asked.Topics {
			topic := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			topic.Topic = asked.Topic
			for _, number := range asked.Partitions {
				partition := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
				partition.Partition, partition.ErrorCode = number, code
				topic.Partitions = append(topic.Partitions, partition)
			}
			transaction.Topics = append(transaction.Topics, topic)
		}
		response.Transactions = append(response.Transactions, transaction)
	}
	return response
}
