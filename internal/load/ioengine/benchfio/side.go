//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// nativeVerb makes this program run the native side only, in a process of its own so that its CPU time can be taken.
const nativeVerb = "__native"

func runNative(ctx context.Context, s settings, d *device, job string) (measured, error) {
	w := load.Workload{
		Name: "bench", ConfigName: "bench.fio", Config: job, Runtime: seconds(s.seconds),
		Devices: []load.Device{{Name: d.path, Path: d.path, SizeBytes: s.size, Consent: load.Consent{Own: true, SizeBytes: s.size}}},
	}
	text, err := json.Marshal(w)
	if err != nil {
		return measured{}, err
	}
	var m measured
	out, cpu, err := run(ctx, os.Args[0], "", nativeVerb, string(text))
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	m.cpu = cpu
	return m, err
}

// nativeMain is the process of the native side.
func nativeMain(args []string) int {
	err := func() error {
		var w load.Workload
		if err := json.Unmarshal([]byte(args[0]), &w); err != nil {
			return err
		}
		instance, err := ioengine.New().Prepare(context.Background(), w)
		if err != nil {
			return err
		}
		var sum interval.Traffic
		var length int64
		err = instance.Run(context.Background(), load.SinkFunc(func(iv interval.Interval) {
			total := iv.Totals()
			sum.Add(&total)
			length += iv.LengthNanos
		}))
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(measured{
			Operations: sum.Operations, Bytes: sum.Bytes, Seconds: float64(length) / 1e9,
			P50: sum.Service.Quantile(0.5), P99: sum.Service.Quantile(0.99), Engine: instance.(load.Describer).Engine().String(),
		})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fioDocument is what is read of fio's JSON.
type fioDocument struct {
	Jobs []struct {
		Read  fioTraffic `json:"read"`
		Write fioTraffic `json:"write"`
	} `json:"jobs"`
}

type fioTraffic struct {
	Operations uint64  `json:"total_ios"`
	Bytes      uint64  `json:"io_bytes"`
	Rate       float64 `json:"iops"`
	Clat       struct {
		Percentile map[string]float64 `json:"percentile"`
	} `json:"clat_ns"`
}

func runFio(ctx context.Context, s settings, job string) (measured, error) {
	out, cpu, err := run(ctx, "fio", job, "--output-format=json", "--runtime="+strconv.FormatInt(seconds(s.seconds).Milliseconds(), 10)+"ms", "-")
	if err != nil {
		return measured{}, err
	}
	var document fioDocument
	err = json.Unmarshal(out, &document)
	if err == nil && len(document.Jobs) != 1 {
		err = fmt.Errorf("it has %d jobs", len(document.Jobs))
	}
	if err != nil {
		return measured{}, fmt.Errorf("read fio's result: %w: %.200s", err, out)
	}
	t := &document.Jobs[0].Read
	if document.Jobs[0].Write.Operations > 0 {
		t = &document.Jobs[0].Write
	}
	return measured{
		Operations: t.Operations, Bytes: t.Bytes, Seconds: float64(t.Operations) / t.Rate,
		P50: t.Clat.Percentile["50.000000"], P99: t.Clat.Percentile["99.000000"], Engine: "fio", cpu: cpu,
	}, nil
}

// run runs a program and returns its output and CPU time, that of its children included.
func run(ctx context.Context, program, input string, args ...string) ([]byte, time.Duration, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Stdin = strings.NewReader(input)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %s", program, err, messages.Bytes())
	}
	return out.Bytes(), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), nil
}

func fioVersion(ctx context.Context) string {
	out, _, err := run(ctx, "fio", "", "--version")
	if err != nil {
		return "fio"
	}
	return "native against " + strings.TrimSpace(string(out))
}
