package ioengine_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/testreq"
)

// written lets the engine write with the options, on a file of its own, and returns the first size bytes.
func written(t *testing.T, options string, size int) []byte {
	t.Helper()
	w := files(t, job(fmt.Sprintf("rw=write size=%d ioengine=libaio iodepth=4 %s", size, options)))
	run(t, ioengine.New(), w)
	return content(t, w)[:size]
}

var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderCRC(false)) })

// compressors return the size of a window when it is compressed.
var compressors = map[string]func(t *testing.T, data []byte) int{
	"zstd": func(t *testing.T, data []byte) int {
		encoder, err := zstdEncoder()
		if err != nil {
			t.Fatal(err)
		}
		return len(encoder.EncodeAll(data, nil))
	},
	"deflate": func(t *testing.T, data []byte) int {
		var out bytes.Buffer
		encoder, err := flate.NewWriter(&out, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := encoder.Write(data); err != nil {
			t.Fatal(err)
		}
		encoder.Close()
		return out.Len()
	},
}

var windows = []int{4 << 10, 32 << 10, 256 << 10, 1 << 20}

// compressed returns what part of data is left when each window is compressed for itself.
func compressed(t *testing.T, data []byte, window int, with func(*testing.T, []byte) int) float64 {
	t.Helper()
	sum := 0
	for at := 0; at < len(data); at += window {
		sum += with(t, data[at:at+window])
	}
	return float64(sum) / float64(len(data))
}

// compressedBy is the same with a program, for the whole of data as one window.
func compressedBy(t *testing.T, data []byte, program string, arguments ...string) float64 {
	t.Helper()
	cmd := exec.Command(program, arguments...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return float64(len(out)) / float64(len(data))
}

// uniqueShare returns how many of the blocks of 4 KiB are different, as a share.
func uniqueShare(data []byte) float64 {
	seen := map[string]bool{}
	for at := 0; at < len(data); at += 4096 {
		seen[string(data[at:at+4096])] = true
	}
	return float64(len(seen)) / float64(len(data)/4096)
}

func TestCompressibilityHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options string
		want    float64
		window  int // smallest; a chunk does not show in less than itself
	}{
		{"bs=4k", 1, 4 << 10},
		{"bs=64k", 1, 4 << 10},
		{"bs=4k refill_buffers=1 scramble_buffers=0", 1, 4 << 10},
		{"bs=4k buffer_compress_percentage=50", 0.50, 4 << 10},
		{"bs=64k buffer_compress_percentage=30", 0.70, 4 << 10},
		{"bs=64k buffer_compress_percentage=80", 0.20, 4 << 10},
		{"bs=4k buffer_compress_percentage=10 zero_buffers", 0.90, 4 << 10},
		{"bs=4k buffer_compress_percentage=50 buffer_pattern=0xdeadbeef", 0.50, 4 << 10},
		{"bs=64k buffer_compress_percentage=50 buffer_compress_chunk=128", 0.50, 4 << 10},
		{"bs=64k buffer_compress_percentage=50 buffer_compress_chunk=4k", 0.50, 4 << 10},
		{"bs=64k buffer_compress_percentage=25 buffer_compress_chunk=0", 0.75, 256 << 10},
		{"bs=4k buffer_compress_percentage=50 buffer_compress_chunk=1m", 0.50, 4 << 10},
		{"bsrange=4k-64k buffer_compress_percentage=50 buffer_compress_chunk=3000", 0.50, 32 << 10},
		{"bs=4k buffer_compress_percentage=50 dedupe_percentage=30", 0.50, 4 << 10},
		{"bs=4k buffer_compress_percentage=100", 0, 4 << 10},
	} {
		// What comes after the first MiBs repeats what lies farther back than a window.
		data := written(t, c.options, 8*mib)[7*mib:]
		for _, window := range windows {
			for name, compressor := range compressors {
				if window < c.window {
					continue
				}
				got := compressed(t, data, window, compressor)
				if c.want == 1 && got < 0.99 || math.Abs(got-c.want) > 0.02 {
					t.Errorf("%s: %s leaves %.4f of windows of %d KiB, want %.2f", c.options, name, got, window>>10, c.want)
				}
			}
		}
	}
}

// Programs with large windows find no more than was requested.
func TestCompressorsOfTheMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("needs compressors")
	}
	t.Parallel()
	xz := testreq.Program(t, "xz")
	zstd, _ := exec.LookPath("zstd") // xz sees as far, so it is enough
	for options, want := range map[string]float64{"bs=4k": 1, "bs=4k buffer_compress_percentage=50": 0.50, "bs=64k dedupe_percentage=50": 0.50} {
		data := written(t, options, 8*mib)
		near(t, options+": xz", compressedBy(t, data, xz, "--lzma2=preset=0,dict=64MiB", "-c"), want, 0.02)
		if zstd != "" {
			near(t, options+": zstd", compressedBy(t, data, zstd, "-9", "--long=27", "-q", "-c"), want, 0.02)
		}
	}
}

func TestDuplicatesHold(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]float64{
		"bs=4k": 1, "bs=4k dedupe_percentage=30": 0.70, "bs=4k dedupe_percentage=50": 0.50, "bs=4k dedupe_percentage=80": 0.20,
		"bs=4k dedupe_percentage=95": 0.05, "bs=4k dedupe_percentage=1": 0.99, "bs=64k dedupe_percentage=50": 0.50,
		"bs=64k dedupe_percentage=30 buffer_compress_percentage=50": 0.70, "bs=4k dedupe_percentage=50 zero_buffers": 0.50,
		"bssplit=4k/50:64k/50 dedupe_percentage=40": 0.60, "bsrange=4k-16k dedupe_percentage=75": 0.25,
		"bs=4k dedupe_percentage=50 dedupe_mode=working_set dedupe_working_set_percentage=1": 0.50,
		"bs=4k rw=randwrite dedupe_percentage=50":                                            0.50, "bs=4k dedupe_percentage=100": 0,
	} {
		data := written(t, options, 16*mib)
		near(t, options+": unique blocks", uniqueShare(data), want, 0.015)
	}
}

// A repeat is chosen among all that was written before, and no block is much more frequent than others.
func TestDuplicatesAreSpread(t *testing.T) {
	t.Parallel()
	data := written(t, "bs=4k dedupe_percentage=50", 16*mib)
	counts := map[string]int{}
	var repeats [4]float64
	for at := 0; at < len(data); at += 4096 {
		block := string(data[at : at+4096])
		if counts[block]++; counts[block] > 1 {
			repeats[at*4/len(data)]++
		}
	}
	for quarter, n := range repeats {
		near(t, fmt.Sprintf("repeats in quarter %d", quarter), n/1024, 0.50, 0.02)
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if most > 40 {
		t.Errorf("one block was written %d times", most)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		"bs=4k buffer_pattern=0xdeadbeef":                    "\xde\xad\xbe\xef",
		"bs=4k buffer_pattern=\"abc\"-12 zero_buffers":       "abc\xf4\xff\xff\xff",
		"bs=4k buffer_pattern=0x11 dedupe_percentage=50":     "\x11",
		"bs=12k buffer_pattern=\"x\" refill_buffers size=1m": "x",
	} {
		data := written(t, options, 12<<16)
		size := 4096
		if strings.Contains(options, "12k") {
			size = 12 << 10
		}
		block := bytes.Repeat([]byte(want), size)[:size]
		if !bytes.Equal(data, bytes.Repeat(block, len(data)/size)) {
			t.Errorf("%s: wrote %x…", options, data[:16])
		}
	}
}

// What was read into a buffer is never written, whatever the content.
func TestReadsDoNotLeakIntoWrites(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"zero_buffers", "buffer_pattern=0", "buffer_compress_percentage=100"} {
		w := files(t, job("rw=randrw bs=4k size=1m norandommap io_size=8m ioengine=libaio iodepth=8 "+options))
		if err := os.WriteFile(w.Devices[0].Path, bytes.Repeat([]byte{7}, 64*mib), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, ioengine.New(), w)
		data := content(t, w)
		for at := 0; at < mib; at += 4096 {
			if block := data[at : at+4096]; bytes.Count(block, []byte{7}) != 4096 && bytes.Count(block, []byte{0}) != 4096 {
				t.Fatalf("%s: the block at %d holds neither what was there nor zeros", options, at)
			}
		}
		if bytes.Count(data[:mib], []byte{0}) < mib/2 {
			t.Errorf("%s: zeros were not written", options)
		}
	}
}

// Content with shares is a function of key and number too: queue depth and order of completion do not change it.
func TestShapedContentIsDeterministic(t *testing.T) {
	t.Parallel()
	options := "rw=randwrite bssplit=4k/50:16k/50 direct=1 buffer_compress_percentage=40 dedupe_percentage=30 "
	first := written(t, options+"ioengine=psync", 8*mib)
	if !bytes.Equal(first, written(t, options+"iodepth=32", 8*mib)) {
		t.Error("queue depth or back end change what is written")
	}
}

// The same options make fio write data of about the same compressibility and the same share of duplicates.
func TestContentIsThatOfFio(t *testing.T) {
	if testing.Short() {
		t.Skip("needs fio")
	}
	t.Parallel()
	program, dir := testreq.Program(t, "fio"), t.TempDir()
	for _, options := range []string{
		"bs=4k refill_buffers", "bs=4k buffer_compress_percentage=50", "bs=4k buffer_compress_percentage=30",
		"bs=64k buffer_compress_percentage=50 buffer_compress_chunk=4k", "bs=64k buffer_compress_percentage=50 buffer_compress_chunk=0",
		"bs=4k buffer_compress_percentage=50 buffer_pattern=0xdeadbeef", "bs=4k buffer_compress_percentage=50 zero_buffers",
		"bs=4k dedupe_percentage=50 dedupe_mode=working_set", "bs=4k dedupe_percentage=80 dedupe_mode=working_set dedupe_working_set_percentage=1",
		"bs=4k dedupe_percentage=50", "bs=4k dedupe_percentage=80", "bs=4k dedupe_percentage=30 buffer_compress_percentage=50",
		"bs=4k buffer_pattern=0x1122", "bs=4k dedupe_percentage=50 buffer_pattern=0x11", "bs=4k dedupe_percentage=50 zero_buffers",
		"bs=4k zero_buffers", "bs=4k zero_buffers buffer_pattern=0x22",
	} {
		file := filepath.Join(dir, "written")
		arguments := []string{"--output=" + filepath.Join(dir, "said"), "--name=a", "--rw=write", "--size=16m", "--filename=" + file}
		for option := range strings.FieldsSeq(options) {
			arguments = append(arguments, "--"+option)
		}
		if said, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", options, err, said)
		}
		fio, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ours := written(t, options, 16*mib)
		near(t, options+": unique blocks", uniqueShare(ours), uniqueShare(fio), 0.015)
		if strings.Contains(options, "dedupe") {
			continue // fio repeats the block just before, which a window of a compressor holds
		}
		near(t, options+": deflate", compressed(t, ours[:2*mib], 256<<10, compressors["deflate"]),
			compressed(t, fio[:2*mib], 256<<10, compressors["deflate"]), 0.02)
		if unique := uniqueShare(fio); unique < 0.5 && !bytes.Equal(fio, ours) {
			t.Errorf("%s: fio wrote %x…, we %x…", options, fio[:8], ours[:8])
		}
	}
}

func TestPlanSaysWhatIsWritten(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		"rw=write":                           "writes incompressible data",
		"rw=randrw zero_buffers":             "writes zeros",
		"rw=write buffer_pattern=0xdeadbeef": "writes one pattern of 4 B again and again",
		"rw=write buffer_compress_percentage=50 dedupe_percentage=30": "writes data that is 50 % compressible in chunks of 512 B, " +
			"30 % duplicates in blocks of 4 KiB",
		"rw=write buffer_compress_percentage=5 buffer_compress_chunk=0": "writes data that is 5 % compressible in each block",
		"rw=write bs=16k dedupe_percentage=50":                          "writes incompressible data, 50 % duplicates in blocks of 16 KiB",
		"rw=read buffer_compress_percentage=50":                         "",
		"rw=write ioengine=null":                                        "",
	} {
		plan, err := ioengine.New().Plan(job(options))
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		if want != "" {
			want = `job "job": ` + want
		}
		if got := strings.Join(plan.Notes, "\n"); got != want {
			t.Errorf("%s: notes %q, want %q", options, got, want)
		}
	}
}

// Jobs that write alike are named together, so that a plan says what is written once.
func TestPlanNamesJobsThatWriteAlike(t *testing.T) {
	t.Parallel()
	w := job("rw=write")
	w.Config = "[global]\nrw=write\nsize=1m\nfilename=/dev/sdb\n[a]\n[b]\nzero_buffers\n[c]\n"
	plan, err := ioengine.New().Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	want := "job \"b\": writes zeros\njobs \"a\", \"c\": writes incompressible data"
	if got := strings.Join(plan.Notes, "\n"); got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}
