package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const valueBytes = 100

// produce sends the numbers asked for; franz-go's producer is idempotent, with acks=all.
func produce(given arguments) error {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	options := append(clientOptions(given),
		kgo.DefaultProduceTopic(given.topic),
		kgo.ProducerBatchCompression(codecs[given.compression]),
	)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()

	var failed error
	var once sync.Once
	began := time.Now()
	for sent := range given.count {
		if given.rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(sent) * time.Second / time.Duration(given.rate))))
		}
		number := given.start + sent
		record := &kgo.Record{
			Key:   fmt.Appendf(nil, "k%d", number),
			Value: fmt.Appendf(nil, "%-*d", valueBytes, number),
		}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	emit("produced", fields{"count": given.count})
	return nil
}
