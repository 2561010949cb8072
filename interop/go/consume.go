package main

import (
	"context"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollTime      = 100 * time.Millisecond
	commitTime    = 10 * time.Second
	batchRecords  = 100
	sessionTime   = 6 * time.Second
	heartbeatTime = time.Second
)

// member prints what happens to one consumer. Rebalances wait while records are handled
// (BlockRebalanceOnPoll); the lock covers the moments between.
type member struct {
	topic   string
	lock    sync.Mutex
	pending map[int32]int64
}

func consume(given arguments) error {
	stop, ignore := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer ignore()
	member := &member{topic: given.topic, pending: map[int32]int64{}}
	client, err := kgo.NewClient(append(clientOptions(given), member.options(given)...)...)
	if err != nil {
		return err
	}
	for stop.Err() == nil {
		member.step(stop, client)
	}
	// Close alone does not wait until the coordinator has been told.
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	if err := client.LeaveGroupContext(ctx); err != nil {
		return err
	}
	client.CloseAllowingRebalance()
	emit("closed", nil)
	return nil
}

func (m *member) options(given arguments) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(given.group),
		kgo.ConsumeTopics(given.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
			if len(change[m.topic]) > 0 {
				emit("assigned", fields{"partitions": change[m.topic]})
			}
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, client *kgo.Client, change map[string][]int32) {
			m.commit(client)
			m.gone("revoked", change[m.topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
			m.gone("lost", change[m.topic])
		}),
	}
	if given.instanceID != "" {
		options = append(options, kgo.InstanceID(given.instanceID))
	}
	if given.protocol == "consumer" {
		// Sticky asks the coordinator for its uniform assignor.
		return append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	options = append(options, kgo.SessionTimeout(sessionTime), kgo.HeartbeatInterval(heartbeatTime))
	switch given.assignor {
	case "range":
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	case "roundrobin":
		options = append(options, kgo.Balancers(kgo.RoundRobinBalancer()))
	}
	return options
}

func (m *member) step(stop context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(stop, pollTime)
	defer cancel()
	fetches := client.PollRecords(ctx, batchRecords)
	defer client.AllowRebalance()
	var records [][3]int64
	fetches.EachRecord(func(record *kgo.Record) {
		number, err := strconv.ParseInt(strings.TrimSpace(string(record.Value)), 10, 64)
		fail(err)
		records = append(records, [3]int64{int64(record.Partition), record.Offset, number})
		m.lock.Lock()
		m.pending[record.Partition] = record.Offset + 1
		m.lock.Unlock()
	})
	if len(records) > 0 {
		emit("records", fields{"records": records})
	}
	m.commit(client)
}

// commit commits what is pending, and keeps what could not be committed for the next time.
func (m *member) commit(client *kgo.Client) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(m.pending) == 0 {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	for partition, next := range m.pending {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: next}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	// Waits for the answer, and gives one error for all partitions at most.
	err := commitSync(ctx, client, map[string]map[int32]kgo.EpochOffset{m.topic: offsets})
	if err != nil {
		emit("commit_failed", fields{"offsets": m.pairs(), "error": err.Error()})
		return
	}
	emit("committed", fields{"offsets": m.pairs()})
	m.pending = map[int32]int64{}
}

func (m *member) pairs() [][2]int64 {
	var pairs [][2]int64
	for partition, next := range m.pending {
		pairs = append(pairs, [2]int64{int64(partition), next})
	}
	return pairs
}

func (m *member) gone(event string, partitions []int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range partitions {
		delete(m.pending, partition)
	}
	if len(partitions) > 0 {
		emit(event, fields{"partitions": partitions})
	}
}
