package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitSync commits and returns the first error, of the request or of a partition.
func commitSync(
	ctx context.Context, client *kgo.Client, offsets map[string]map[int32]kgo.EpochOffset,
) error {
	var failed error
	client.CommitOffsetsSync(ctx, offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			if err != nil {
				failed = err
				return
			}
			for _, topic := range answer.Topics {
				for _, partition := range topic.Partitions {
					if err := kerr.ErrorForCode(partition.ErrorCode); err != nil && failed == nil {
						failed = fmt.Errorf("partition %d: %w", partition.Partition, err)
					}
				}
			}
		})
	return failed
}
