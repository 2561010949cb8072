// The agent for franz-go; see interop/README.md for its commands and its output.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type arguments struct {
	bootstrap, topic, compression, group, protocol, instanceID, assignor string
	partitions, start, count, rate                                       int
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("a command is missing: version, create, produce, consume or describe"))
	}
	var given arguments
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&given.bootstrap, "bootstrap", "", "host:port")
	flags.StringVar(&given.topic, "topic", "", "")
	flags.StringVar(&given.compression, "compression", "none", "")
	flags.StringVar(&given.group, "group", "", "")
	flags.StringVar(&given.protocol, "protocol", "classic", "")
	flags.StringVar(&given.instanceID, "instance-id", "", "")
	flags.StringVar(&given.assignor, "assignor", "", "")
	flags.IntVar(&given.partitions, "partitions", 1, "")
	flags.IntVar(&given.start, "start", 0, "")
	flags.IntVar(&given.count, "count", 0, "")
	flags.IntVar(&given.rate, "rate", 0, "records a second, 0 without limit")
	fail(flags.Parse(os.Args[2:]))

	switch os.Args[1] {
	case "version":
		printVersion()
	case "create":
		fail(create(given))
	case "produce":
		fail(produce(given))
	case "consume":
		fail(consume(given))
	case "describe":
		fail(describe(given))
	default:
		fail(fmt.Errorf("unknown command %s", os.Args[1]))
	}
}

func printVersion() {
	version := "?"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "github.com/twmb/franz-go" {
				version = module.Version
			}
		}
	}
	emit("version", fields{
		"client":         "franz-go " + version,
		"protocols":      []string{"classic", "consumer"},
		"compressions":   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		"idempotent":     true,
		"static_members": true,
	})
}

func create(given arguments) error {
	client, err := kgo.NewClient(clientOptions(given)...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := admin.CreateTopic(ctx, int32(given.partitions), 1, nil, given.topic); err != nil {
		return err
	}
	for {
		topics, err := admin.ListTopics(ctx, given.topic)
		if err != nil {
			return err
		}
		if len(topics[given.topic].Partitions) == given.partitions {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	emit("created", nil)
	return nil
}

func clientOptions(given arguments) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(given.bootstrap),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
	}
}

type fields map[string]any

// emit prints one event; nothing buffers standard output.
func emit(event string, with fields) {
	line := fields{"event": event}
	for name, value := range with {
		line[name] = value
	}
	text, err := json.Marshal(line)
	fail(err)
	fmt.Println(string(text))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
