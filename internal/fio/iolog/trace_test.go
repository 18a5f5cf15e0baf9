package iolog_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/testreq"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Categories and actions of linux/blktrace_api.h.
const (
	catRead, catWrite, catFlush, catSync, catQueue, catIssue, catComplete = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 6, 1 << 7
	catPassthrough, catNotify, catMeta, catDiscard, catFUA                = 1 << 9, 1 << 10, 1 << 12, 1 << 13, 1 << 15

	actQueue, actMerge, actGet, actIssue, actComplete, actSplit, actRemap = 1, 2, 4, 7, 8, 13, 15
)

// event is one record of a trace.
type event struct {
	action, category uint32
	nanos, sector    uint64
	bytes            uint32
	device           uint32
	payload          []byte
}

const deviceA, deviceB = 8<<20 | 16, 259<<20 | 3

// encode makes the text of a trace: struct blk_io_trace, version 7.
func encode(order binary.AppendByteOrder, events []event) string {
	var b []byte
	for i, e := range events {
		if e.device == 0 {
			e.device = deviceA
		}
		b = order.AppendUint32(b, 0x65617407)
		b = order.AppendUint32(b, uint32(i+1))
		b = order.AppendUint64(b, e.nanos)
		b = order.AppendUint64(b, e.sector)
		b = order.AppendUint32(b, e.bytes)
		b = order.AppendUint32(b, e.category<<16|e.action)
		b = order.AppendUint32(b, 4711)
		b = order.AppendUint32(b, e.device)
		b = order.AppendUint32(b, 0)
		b = order.AppendUint16(b, 0)
		b = order.AppendUint16(b, uint16(len(e.payload)))
		b = append(b, e.payload...)
	}
	return string(b)
}

// sample has every sort of event.
var sample = []event{
	{action: 0, category: catNotify, payload: []byte("fio\x00            ")},
	{action: actQueue, category: catRead | catQueue, nanos: 1e9, sector: 8, bytes: 4096},
	{action: actGet, category: catRead | catQueue, nanos: 1e9 + 10, sector: 8, bytes: 4096},
	{action: actIssue, category: catRead | catIssue, nanos: 1e9 + 20, sector: 8, bytes: 4096},
	{action: actComplete, category: catRead | catComplete, nanos: 1e9 + 900, sector: 8, bytes: 4096},
	{action: actQueue, category: catWrite | catSync | catQueue, nanos: 1e9 + 1e6, sector: 1024, bytes: 65536},
	{action: actRemap, category: catWrite | catQueue, nanos: 1e9 + 1e6, sector: 1024, bytes: 65536, payload: make([]byte, 16)},
	{action: actQueue, category: catRead | catQueue, nanos: 1e9 + 2e6, sector: 16, bytes: 512, device: deviceB},
	{action: actQueue, category: catWrite | catFlush | catQueue, nanos: 1e9 + 3e6},
	{action: actQueue, category: catWrite | catFlush | catFUA | catQueue, nanos: 1e9 + 4e6, sector: 64, bytes: 4096},
	{action: actQueue, category: catWrite | catDiscard | catQueue, nanos: 1e9 + 5e6, sector: 2048, bytes: 1 << 20},
	{action: actQueue, category: catRead | catPassthrough | catQueue, nanos: 1e9 + 6e6, sector: 1, bytes: 96},
	{action: actQueue, category: catRead | catMeta | catQueue, nanos: 1e9 + 55e5, sector: 0, bytes: 4096},
	{action: 2, category: catNotify, nanos: 1e9 + 6e6, payload: []byte("hello")},
	{action: actQueue, category: catRead | catQueue, nanos: 1e9 + 7e6, sector: 80},
}

const sampleRead = "0 8:16 read 4096 4096\n1000 8:16 write 524288 65536\n2000 259:3 read 8192 512\n3000 8:16 sync 0 0\n4000 8:16 sync 0 0\n" +
	"4000 8:16 write 32768 4096\n5000 8:16 trim 1048576 1048576\n5500 8:16 read 0 4096\n"

func TestTraces(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		all, s := read(t, encode(order, sample), iolog.Options{})
		if got := show(all, s); got != sampleRead {
			t.Errorf("%v: got\n%swant\n%s", order, got, sampleRead)
		}
		if !s.Trace || len(s.Warnings) != 2 || s.Align != 512 {
			t.Errorf("%v: %+v", order, s)
		}
	}
	all, s := read(t, encode(binary.LittleEndian, sample), iolog.Options{Redirect: "x", Skip: [iolog.KindCount]bool{iolog.Write: true}})
	if got := show(all, s); len(s.Files) != 1 || strings.Contains(got, "write") || strings.Count(got, " x ") != 6 {
		t.Errorf("redirected:\n%s", got)
	}
}

// TestTraceOfIssuedRequests: a trace without queued requests counts those that were issued.
func TestTraceOfIssuedRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.blktrace.0")
	text := encode(binary.LittleEndian, []event{
		{action: actIssue, category: catRead | catIssue, nanos: 5, sector: 8, bytes: 4096},
		{action: actComplete, category: catRead | catComplete, nanos: 9, sector: 8, bytes: 4096},
		{action: actIssue, category: catWrite | catIssue, nanos: 1005, sector: 16, bytes: 4096},
	})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := iolog.Open(path, iolog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Data() != 2 || len(l.Warnings) != 2 || l.Warnings[0].Code != "trace-issued" || l.Warnings[1].Code != "trace-of-one-cpu" {
		t.Errorf("%+v", l.Summary)
	}
	r, err := l.Reader()
	var a iolog.Action
	for range 2 {
		if err == nil {
			err = r.Next(&a)
		}
	}
	if err != nil || a.Kind != iolog.Write || a.Nanos != 1000 {
		t.Errorf("%+v %v", a, err)
	}
}

func TestTraceFaults(t *testing.T) {
	whole := encode(binary.LittleEndian, sample)
	first := whole[:48+16+48] // the notice and the first read
	for name, c := range map[string]struct{ text, want string }{
		"garbage":         {first + strings.Repeat("x", 48), "byte 112: here begins no event"},
		"other version":   {strings.Replace(whole, "\x07tae", "\x08tae", 1), "version 8, only 7 is known"},
		"other order":     {first + encode(binary.BigEndian, sample), "byte 112: here begins no event"},
		"enormous sector": {encode(binary.LittleEndian, []event{{action: actQueue, category: catRead, sector: 1 << 60, bytes: 512}}), "is not possible"},
		"enormous time":   {encode(binary.LittleEndian, []event{{action: actQueue, category: catRead, nanos: math.MaxUint64, bytes: 512}}), "is not possible"},
		"enormous length": {encode(binary.LittleEndian, []event{{action: actQueue, category: catRead, bytes: 1 << 31}}), "is not possible"},
		"completions":     {encode(binary.LittleEndian, sample[4:5]), "has no operation to replay"},
		"header only":     {whole[:4], "has no operation to replay"},
	} {
		if _, err := iolog.Scan("trace", strings.NewReader(c.text), iolog.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What blktrace leaves when it is killed.
	for cut := len(first) + 1; cut < len(whole); cut++ {
		if _, err := iolog.Scan("trace", strings.NewReader(whole[:cut]), iolog.Options{}); err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
	}
	devices := make([]event, 1<<14+1)
	for i := range devices {
		devices[i] = event{action: actQueue, category: catRead, bytes: 512, device: uint32(i + 1)}
	}
	if _, err := iolog.Scan("trace", strings.NewReader(encode(binary.LittleEndian, devices)), iolog.Options{}); err == nil {
		t.Error("a trace of 16385 devices is read")
	}
}

// TestTracesAreWhatBlkparseReads gives the encoder's traces to blkparse, for the queued requests that it sees and for the
// merged binary file that it makes.
func TestTracesAreWhatBlkparseReads(t *testing.T) {
	testreq.Program(t, "blkparse")
	dir := t.TempDir()
	text := encode(binary.LittleEndian, sample)
	if err := os.WriteFile(filepath.Join(dir, "sample.blktrace.0"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("blkparse", "-i", "sample", "-q", "-a", "queue", "-f", "%a %D %d %S %N %T %t\n", "-d", "merged")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		var sector, size, seconds, nanos uint64
		var device, how string
		if n, _ := fmt.Sscanf(line, "Q %s %s %d %d %d %d", &device, &how, &sector, &size, &seconds, &nanos); n != 6 {
			continue
		}
		found := false
		for _, e := range sample {
			found = found || e.action == actQueue && e.sector == sector && uint64(e.bytes) == size
		}
		if !found {
			t.Errorf("blkparse reads a request that is not in the sample: %s", line)
		}
		seen++
	}
	if seen < 8 {
		t.Fatalf("blkparse reads %d requests\n%s", seen, out)
	}
	merged, err := os.ReadFile(filepath.Join(dir, "merged"))
	if err != nil {
		t.Fatal(err)
	}
	all, s := read(t, string(merged), iolog.Options{})
	if got := show(all, s); got != sampleRead {
		// blkparse sorts by time, which is the sample's order but for one.
		want := strings.Replace(sampleRead, "5500 8:16 read 0 4096\n", "5500 8:16 read 0 4096\n", 1)
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
