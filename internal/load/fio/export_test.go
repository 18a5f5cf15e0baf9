package fio

import (
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// SetGrace shortens the time between SIGINT and SIGKILL.
func SetGrace(in load.Instance, grace time.Duration) { in.(*instance).grace = grace }

// Differences reads fio's output as one group on device and returns the traffic of each document, and other lines.
func Differences(output, device string, untimed bool) (out []interval.Interval, other []string, err error) {
	m := newMeter([]group{{name: "a", devices: []string{device}, untimed: untimed}})
	err = readDocuments(strings.NewReader(output),
		func(d document) { out = append(out, m.take(d)) },
		func(line string) { other = append(other, line) })
	return out, other, err
}

// JobFile returns what fio would read for w.
func JobFile(w load.Workload) (string, error) {
	c, err := compile(w)
	if err != nil {
		return "", err
	}
	err = c.print(w)
	return c.text, err
}

// BucketKeys returns the buckets of read latency in fio's output.
func BucketKeys(output string) (keys []uint64) {
	_ = readDocuments(strings.NewReader(output), func(d document) {
		for i := range d.Groups {
			for k := range d.Groups[i].Read.Clat.Bins {
				keys = append(keys, k)
			}
		}
	}, func(string) {})
	return keys
}
