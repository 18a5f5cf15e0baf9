package ioengine_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/braggdev/bragg/internal/load/ioengine"
)

var update = flag.Bool("update", false, "rewrite golden files")

// What a seed stands for must never change: data that an earlier version wrote is checked by making it again.
func TestOperationsAndContentStayAsTheyAre(t *testing.T) {
	var got bytes.Buffer
	for _, options := range []string{
		"rw=randrw bssplit=8k/90:32k/10 norandommap percentage_random=80 rate_iops=500,250 rate_process=poisson numjobs=2",
		"rw=randwrite bssplit=4k/50:64k/50 size=8m filename=/dev/sdc",
		"rw=randread bsrange=4k-16k random_distribution=zipf:1.1 norandommap",
		"rw=randread bs=8k random_distribution=pareto:0.2",
		"rw=read bs=64k zonesize=128k zoneskip=1m",
	} {
		fmt.Fprintf(&got, "# %s\n", options)
		for _, o := range operations(t, job(options), 12) {
			fmt.Fprintln(&got, o)
		}
	}
	w := files(t, job("rw=randwrite bs=4k size=1m iodepth=8 ioengine=libaio"))
	run(t, ioengine.Generator{Backend: "psync"}, w)
	fmt.Fprintf(&got, "# content\n%x\n", sha256.Sum256(content(t, w)[:mib]))
	for _, options := range []string{
		"rw=randread bs=4k random_distribution=normal:10",
		"rw=randread bs=4k random_distribution=pareto:0.8:0.5",
		"rw=randread bs=4k random_distribution=zoned:60/10:30/20:8/30:2/40",
		"rw=randrw bs=4k random_distribution=zoned_abs:50/8m:50/1m,100/16m",
	} {
		fmt.Fprintf(&got, "# %s\n", options)
		for _, o := range operations(t, job(options), 12) {
			fmt.Fprintln(&got, o)
		}
	}
	for _, options := range []string{
		"buffer_compress_percentage=30", "dedupe_percentage=40 bssplit=4k/50:16k/50",
		"dedupe_percentage=70 buffer_compress_percentage=50 buffer_compress_chunk=1000 buffer_pattern=\"golden\"",
	} {
		fmt.Fprintf(&got, "# content %s\n%x\n", options, sha256.Sum256(written(t, options, mib)))
	}

	const golden = "testdata/operations.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("operations or content differ from %s:\n%s", golden, got.Bytes())
	}
}
