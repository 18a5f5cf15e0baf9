package ioengine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// verifyJobs are shapes of writes; apart says that no two of them go to the same place.
var verifyJobs = []struct {
	options string
	apart   bool
}{
	{"rw=write bs=4k size=1m", true},
	{"rw=randwrite bs=4k size=1m", true},
	{"rw=randwrite bs=16k verify_interval=4k size=1m offset=64k", true},
	{"rw=write bs=8k verify_interval=4k verify_offset=128 size=1m", true},
	{"rw=randwrite bssplit=4k/60:16k/40 size=1m", true},
	{"rw=randrw bs=4k size=1m", true},
	{"rw=randrw bs=4k size=1m rate_iops=20000,10000", true},
	{"rw=rw bs=4k size=1m rate_iops=20000,10000", true},
	{"rw=write bs=4k size=1m verify_backlog=16", true},
	{"rw=randwrite bs=4k size=1m verify_backlog=64 verify_backlog_batch=16", true},
	{"rw=write bs=4k size=512k number_ios=50", true},
	{"rw=write:64k bs=16k size=1m io_size=300k", false},
	{"rw=write:-32k bs=16k size=1m", false},
	{"rw=write bs=4k size=256k io_size=1m", false},
	{"rw=randwrite bs=4k size=256k loops=3", false},
	{"rw=randwrite bs=4k size=256k loops=3 rate_iops=50000", false},
	{"rw=randwrite bs=4k size=1m norandommap", false},
	{"rw=randwrite bsrange=4k-16k size=1m norandommap", false},
	{"rw=randwrite bs=4k size=1m random_distribution=zipf:1.2", false},
	{"rw=randwrite bs=4k size=1m percentage_random=50", false},
	{"rw=randwrite bs=4k size=1m norandommap verify_backlog=64", false},
	{"rw=randwrite bs=4k size=1m norandommap verify_backlog=64 verify_backlog_batch=10", false},
	{"rw=randrw bs=4k size=1m norandommap rate_iops=20000,10000", false},
	{"rw=write bs=4k size=1m zonemode=strided zonesize=16k zonerange=64k zoneskip=32k io_size=512k", false},
	{"rw=randwrite:4 bs=4k size=1m", false},
	{"rw=randwrite bs=4k ba=512 size=256k io_size=512k", false},
	{"rw=randwrite bs=8k ba=512 verify_interval=2k size=256k io_size=256k", false},
}

var verifyMethods = []string{
	"verify=crc32c", "verify=md5", "verify=sha512", "verify=xxhash", "verify=crc7", "verify=sha256", "verify=pattern verify_pattern=0xabcdef%o",
	"verify=crc32c verify_pattern=%o", "verify=meta", "verify=pattern_hdr verify_pattern=0xabcdef%o",
	"verify=pattern verify_pattern=%o verify_pattern_interval=512",
}

// mismatches runs a workload and returns how many operations found data that was not what was written.
func mismatches(t testing.TB, w load.Workload) (wrong uint64, sum interval.Interval) {
	t.Helper()
	w.Generator = "native"
	err := loadtest.Drive(t.Context(), ioengine.New(), w, load.SinkFunc(func(iv interval.Interval) {
		wrong += iv.Directions[interval.Read].Errors["EILSEQ"]
		for d := range iv.Directions {
			sum.Directions[d].Add(&iv.Directions[d])
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return wrong, sum
}

// Whatever is written is found as it was written, whichever writes overwrite each other and however deep the queue is; and
// a flipped bit is found.
func TestWhatIsWrittenVerifies(t *testing.T) {
	defer ioengine.SetWindowUnits(20)() // several windows
	for i, c := range verifyJobs {
		for k, engine := range []string{"ioengine=psync", "ioengine=libaio iodepth=8", "ioengine=io_uring iodepth=16 direct=1"} {
			method := verifyMethods[(i+k)%len(verifyMethods)]
			if strings.Contains(engine, "direct") && strings.Contains(c.options, "verify_offset") {
				continue
			}
			options := strings.Join([]string{c.options, engine, method}, " ")
			w := files(t, job(options))
			wrong, sum := mismatches(t, w)
			read, written := sum.Directions[interval.Read].Operations, sum.Directions[interval.Write].Operations
			if wrong != 0 {
				t.Errorf("%s: %d of %d operations found something else than what was written", options, wrong, read)
				continue
			}
			mixed := strings.Contains(c.options, "rw=randrw") || strings.Contains(c.options, "rw=rw")
			if written == 0 || !mixed && (read == 0 || c.apart && read != written || read > 8*written) {
				t.Errorf("%s: %d writes and %d reads", options, written, read)
			}
			if c.apart && !mixed {
				flipAndFind(t, w, options)
			}
		}
	}
}

// flipAndFind changes one written byte and lets verify_only look for it.
func flipAndFind(t *testing.T, w load.Workload, options string) {
	t.Helper()
	if strings.Contains(options, "verify=meta") || strings.Contains(options, "verify=sha512") {
		return // they do not cover every byte
	}
	only := w
	only.Config = strings.Replace(w.Config, "verify=", "verify_only=1\nverify=", 1)
	if wrong, sum := mismatches(t, only); wrong != 0 || sum.Directions[interval.Write].Operations != 0 || sum.Directions[interval.Read].Operations == 0 {
		t.Errorf("%s: verify_only finds %d wrong of %d, and writes %d", options, wrong, sum.Directions[interval.Read].Operations,
			sum.Directions[interval.Write].Operations)
	}
	f, err := os.OpenFile(w.Devices[0].Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at, b := int64(100_000), make([]byte, 1)
	for b[0] == 0 {
		if at++; at > mib {
			t.Fatalf("%s: nothing was written", options)
		}
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	b[0] ^= 16
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if wrong, _ := mismatches(t, only); wrong != 1 {
		t.Errorf("%s: %d operations found that byte %d was changed", options, wrong, at)
	}
}

// The same over shapes that are drawn.
func TestDrawnJobsVerify(t *testing.T) {
	defer ioengine.SetWindowUnits(64)()
	rapid.Check(t, func(rt *rapid.T) {
		block := rapid.SampledFrom([]int{512, 1024, 4096, 12288}).Draw(rt, "bs")
		options := []string{
			"rw=" + rapid.SampledFrom([]string{"write", "randwrite", "randrw", "rw"}).Draw(rt, "rw"), fmt.Sprintf("bs=%d", block),
			fmt.Sprintf("size=%d", block*rapid.IntRange(1, 40).Draw(rt, "blocks")),
			fmt.Sprintf("offset=%d", 512*rapid.IntRange(0, 20).Draw(rt, "offset")),
			rapid.SampledFrom(verifyMethods).Draw(rt, "method"),
			rapid.SampledFrom([]string{"ioengine=psync", "ioengine=io_uring iodepth=8", "ioengine=libaio iodepth=3"}).Draw(rt, "engine"),
			rapid.SampledFrom([]string{"", "norandommap", "loops=2", "random_distribution=zipf:1.1", "percentage_random=30"}).Draw(rt, "order"),
			rapid.SampledFrom([]string{"", "verify_backlog=1", "verify_backlog=7", "verify_backlog=9 verify_backlog_batch=4"}).Draw(rt, "backlog"),
			rapid.SampledFrom([]string{"", "verify_interval=512"}).Draw(rt, "interval"),
		}
		if ba := rapid.SampledFrom([]int{0, 512}).Draw(rt, "ba"); ba > 0 && strings.HasPrefix(options[0], "rw=rand") {
			options = append(options, fmt.Sprintf("ba=%d", ba))
		}
		w := files(t, job(strings.Join(options, " ")))
		if wrong, sum := mismatches(t, w); wrong != 0 {
			rt.Fatalf("%d of %d reads found something else than what was written", wrong, sum.Directions[interval.Read].Operations)
		}
	})
}

// A write that is there but should not be, because a later one was lost, is found by its seed.
func TestStaleDataIsFound(t *testing.T) {
	w := files(t, job("rw=randwrite bs=4k size=256k verify=crc32c do_verify=0"))
	mismatches(t, w)
	f, err := os.OpenFile(w.Devices[0].Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := make([]byte, 4096)
	if _, err := f.ReadAt(old, 40960); err != nil {
		t.Fatal(err)
	}
	w.Seed++
	mismatches(t, w)
	if _, err := f.WriteAt(old, 40960); err != nil {
		t.Fatal(err)
	}
	w.Config = strings.Replace(w.Config, "do_verify=0", "verify_only=1", 1)
	if wrong, _ := mismatches(t, w); wrong != 0 {
		t.Errorf("without the seed nothing is wrong with an old block, but %d are", wrong)
	}
	w.Config = strings.Replace(w.Config, "verify_only=1", "verify_only=1\nverify_header_seed=1", 1)
	if wrong, _ := mismatches(t, w); wrong != 1 {
		t.Errorf("%d blocks are found to be of another run, want 1", wrong)
	}
}

// Stamping and checking allocate nothing per operation, nor does verification of a backlog.
func TestVerificationDoesNotAllocate(t *testing.T) {
	for _, options := range []string{
		"ioengine=libaio rw=write bs=4k iodepth=16 size=1m verify=crc32c", "ioengine=psync rw=randread bs=4k size=1m verify=null",
		"ioengine=libaio rw=randwrite bs=4k iodepth=16 size=1m verify=md5 verify_backlog=256",
		"ioengine=libaio rw=randwrite bs=4k iodepth=16 size=1m verify=crc32c norandommap",
	} {
		var operations, allocations uint64
		for try := 0; try < 3 && operations == 0; try++ {
			operations, allocations = allocated(t, options, "")
		}
		if operations == 0 || allocations > 1000+operations/50 {
			t.Errorf("%s: %d allocations for %d operations", options, allocations, operations)
		}
	}
}
