package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type groupMember struct {
	ID         string  `json:"id"`
	InstanceID *string `json:"instance_id"`
	Partitions []int32 `json:"partitions"`
}

// describe prints the group as an administrator sees it.
func describe(given arguments) error {
	client, err := kgo.NewClient(clientOptions(given)...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin := kadm.NewClient(client)

	view := describeClassic
	if given.protocol == "consumer" {
		view = describeConsumer
	}
	state, members, err := view(ctx, admin, given)
	if err != nil {
		return err
	}
	committed, err := admin.FetchOffsets(ctx, given.group)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, given.topic)
	if err != nil {
		return err
	}
	emit("group", fields{
		"state":     state,
		"members":   members,
		"committed": committedPairs(committed, given.topic),
		"ends":      endPairs(ends, given.topic),
	})
	return nil
}

func describeClassic(ctx context.Context, admin *kadm.Client, given arguments) (string, []groupMember, error) {
	groups, err := admin.DescribeGroups(ctx, given.group)
	if err != nil {
		return "", nil, err
	}
	group, err := groups.On(given.group, nil)
	if err != nil {
		return "", nil, err
	}
	members := []groupMember{}
	for _, member := range group.Members {
		partitions := []int32{}
		if assignment, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assignment.Topics {
				if topic.Topic == given.topic {
					partitions = append(partitions, topic.Partitions...)
				}
			}
		}
		members = append(members, groupMember{member.MemberID, member.InstanceID, partitions})
	}
	return group.State, members, nil
}

func describeConsumer(ctx context.Context, admin *kadm.Client, given arguments) (string, []groupMember, error) {
	groups, err := admin.DescribeConsumerGroups(ctx, given.group)
	if err != nil {
		return "", nil, err
	}
	group := groups[given.group]
	if group.Err != nil {
		return "", nil, group.Err
	}
	members := []groupMember{}
	for _, member := range group.Members {
		partitions := []int32{}
		for partition := range member.Assignment[given.topic] {
			partitions = append(partitions, partition)
		}
		members = append(members, groupMember{member.MemberID, member.InstanceID, partitions})
	}
	return group.State, members, nil
}

func committedPairs(offsets kadm.OffsetResponses, topic string) [][2]int64 {
	pairs := [][2]int64{}
	offsets.Each(func(offset kadm.OffsetResponse) {
		if offset.Topic == topic {
			pairs = append(pairs, [2]int64{int64(offset.Partition), offset.At})
		}
	})
	return pairs
}

func endPairs(offsets kadm.ListedOffsets, topic string) [][2]int64 {
	pairs := [][2]int64{}
	offsets.Each(func(offset kadm.ListedOffset) {
		if offset.Topic == topic {
			pairs = append(pairs, [2]int64{int64(offset.Partition), offset.Offset})
		}
	})
	return pairs
}
