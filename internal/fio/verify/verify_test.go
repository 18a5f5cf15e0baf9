package verify_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/testreq"
)

var withHeader = []string{
	"meta", "md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "sha1", "sha256", "sha512", "sha3-224", "sha3-256",
	"sha3-384", "sha3-512", "xxhash",
}

func methodOf(t testing.TB, name string) verify.Method {
	t.Helper()
	m, ok := verify.MethodOf(name)
	if !ok {
		t.Fatalf("no method %q", name)
	}
	return m
}

func runFio(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("fio", append([]string{"--name=x", "--filename=data", "--verify_state_save=0"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What fio writes is found right, and it finds right what is written here; in both directions one changed byte is found.
func TestFioAndWeCheckEachOther(t *testing.T) {
	testreq.Program(t, "fio")
	type layout struct{ bs, interval, at int64 }
	common := []layout{{8192, 4096, 0}, {4136, 4136, 200}} // 4136: the last block of a SHA is not like that of 4096
	for _, name := range withHeader {
		layouts := common
		switch {
		case name == "crc32c" || name == "md5":
			layouts = append(common, layout{4096, 4096, 0}, layout{65536, 8192, 0}, layout{4096, 512, 0}, layout{1000, 1000, 0})
		case testing.Short():
			continue
		}
		for _, c := range layouts {
			t.Run(fmt.Sprintf("%s/%d/%d/%d", name, c.bs, c.interval, c.at), func(t *testing.T) {
				checkBothWays(t, name, c.bs, c.interval, c.at)
			})
		}
	}
}

func checkBothWays(t *testing.T, name string, bs, interval, at int64) {
	dir := t.TempDir()
	file := filepath.Join(dir, "data")
	const blocks = 4
	args := []string{fmt.Sprintf("--size=%d", blocks*bs), fmt.Sprintf("--bs=%d", bs), "--verify=" + name, fmt.Sprintf("--verify_interval=%d", interval)}
	// Without verify_fatal fio 3.33 forgets a bad interval that another one follows in the same operation, and exits with 0.
	args = append(args, "--verify_fatal=1")
	if at > 0 {
		args = append(args, fmt.Sprintf("--verify_offset=%d", at))
	}
	if out, err := runFio(t, dir, append(args, "--rw=write", "--do_verify=0")...); err != nil {
		t.Fatalf("fio writes: %v\n%s", err, out)
	}
	codec := newCodec(t, verify.Format{Method: methodOf(t, name), Interval: interval, HeaderOffset: at})
	read := func() []byte {
		data, err := os.ReadFile(file)
		if err != nil || int64(len(data)) != blocks*bs {
			t.Fatalf("read %d bytes: %v", len(data), err)
		}
		return data
	}
	data := read()
	if m := checkAll(codec, data, bs); m != nil {
		t.Fatalf("what fio wrote: %v", m)
	}
	flip := interval + codec.Format().HeaderBytes() + at + 3
	if !methodOf(t, name).Covers() {
		flip = interval + at + 9 // in the header
	}
	data[flip] ^= 4
	if m := checkAll(codec, data, bs); m == nil || m.Offset != flip/interval*interval {
		t.Errorf("byte %d was changed in what fio wrote: %v", flip, m)
	}
	for b := range int64(blocks) {
		block := data[b*bs : (b+1)*bs]
		fillRandom(block)
		codec.Stamp(block, b*bs, verify.Stamp{Seed: 7 + uint64(b), Number: uint64(b), Thread: 1})
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := runFio(t, dir, append(args, "--rw=read")...); err != nil {
		t.Fatalf("fio reads what we wrote: %v\n%s", err, out)
	}
	data[flip] ^= 4
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := runFio(t, dir, append(args, "--rw=read")...)
	want := fmt.Sprintf("offset %d, length %d", flip/interval*interval, interval)
	if err == nil || !strings.Contains(out, want) || !strings.Contains(out, "err=84") {
		t.Errorf("fio did not say %q of a changed byte: %v\n%s", want, err, out)
	}
}

// Patterns, with the offset of the block in them, are the same bytes as fio's.
func TestPatternsAreFios(t *testing.T) {
	testreq.Program(t, "fio")
	for _, c := range []struct {
		name, text string
		pattern    verify.Pattern
	}{
		{"pattern", "0xdeadbeef", verify.Pattern{Bytes: []byte{0xde, 0xad, 0xbe, 0xef}}},
		{"pattern", "%o", verify.Pattern{Bytes: make([]byte, 8), Offsets: []int{0}}},
		{"pattern", `0x616263%o"xyz"`, verify.Pattern{Bytes: []byte("abc\x00\x00\x00\x00\x00\x00\x00\x00xyz"), Offsets: []int{3}}},
		{"pattern", `%o"x"%o`, verify.Pattern{Bytes: []byte("\x00\x00\x00\x00\x00\x00\x00\x00x\x00\x00\x00\x00\x00\x00\x00\x00"), Offsets: []int{0, 9}}},
	} {
		dir := t.TempDir()
		if out, err := runFio(t, dir, "--size=256k", "--bs=64k", "--rw=write", "--verify="+c.name, "--verify_pattern="+c.text); err != nil {
			t.Fatalf("fio: %v\n%s", err, out)
		}
		data, err := os.ReadFile(filepath.Join(dir, "data"))
		if err != nil {
			t.Fatal(err)
		}
		codec := newCodec(t, verify.Format{Method: methodOf(t, c.name), Pattern: c.pattern, Interval: 65536})
		if m := checkAll(codec, data, 65536); m != nil {
			t.Errorf("%s: %v", c.text, m)
		}
		ours := make([]byte, len(data))
		for at := 0; at < len(ours); at += 65536 {
			codec.Stamp(ours[at:at+65536], int64(at), verify.Stamp{})
		}
		if !bytes.Equal(ours, data) {
			t.Errorf("%s: the bytes are not fio's", c.text)
		}
		data[70001] ^= 1
		if m := checkAll(codec, data, 65536); m == nil || m.Offset != 65536 || !strings.Contains(m.Fault, "byte 70001 ") {
			t.Errorf("%s: a changed byte: %v", c.text, m)
		}
	}
}

// Whatever is stamped is found right, and any flipped bit that is covered is found where it is.
func TestStampedBlocksHoldAndFlipsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(withHeader).Draw(t, "method")
		method, _ := verify.MethodOf(name)
		f := verify.Format{Method: method, Interval: rapid.Int64Range(512, 9000).Draw(t, "interval")}
		if rapid.Bool().Draw(t, "shifted") {
			f.HeaderOffset = rapid.Int64Range(f.HeaderBytes(), f.Interval-f.HeaderBytes()).Draw(t, "header offset")
		}
		if rapid.Bool().Draw(t, "patterned") {
			f.Pattern = verify.Pattern{Bytes: rapid.SliceOfN(rapid.Byte(), 9, 40).Draw(t, "pattern"), Offsets: []int{1}}
		}
		if err := f.Validate(); err != nil {
			t.Skip(err)
		}
		codec := verify.New(f)
		intervals := rapid.Int64Range(1, 4).Draw(t, "intervals")
		size, offset := f.Interval*intervals, rapid.Int64Range(0, 1<<50).Draw(t, "offset")
		block := make([]byte, size)
		fillRandom(block)
		stamp := verify.Stamp{Seed: rapid.Uint64().Draw(t, "seed"), Number: rapid.Uint64().Draw(t, "number"), Thread: 3}
		codec.Stamp(block, offset, stamp)
		strict := verify.Strict{Seed: true, Number: true}
		check := func() *verify.Mismatch {
			for at := int64(0); at < size; at += f.Interval {
				if m := codec.Check(block[at:at+f.Interval], verify.Place{Block: offset, Position: at}, &stamp, strict); m != nil {
					return m
				}
			}
			return nil
		}
		if m := check(); m != nil {
			t.Fatalf("what was stamped: %v", m)
		}
		kept := bytes.Clone(block)
		bit := rapid.Int64Range(0, 8*size-1).Draw(t, "bit")
		block[bit/8] ^= 1 << (bit % 8)
		changed := bytes.Clone(block)
		inside := bit / 8 % f.Interval
		covered := method.Covers()
		if start := f.HeaderOffset; !covered && inside >= start && inside < start+f.HeaderBytes() {
			covered = true // header and stored digest
		}
		m := check()
		if covered && (m == nil || m.Offset != offset+bit/8/f.Interval*f.Interval) {
			t.Fatalf("bit %d of byte %d was flipped: %v", bit%8, bit/8, m)
		}
		if !bytes.Equal(block, changed) {
			t.Fatal("checking changed the block")
		}
		other := stamp
		other.Seed, other.Number = stamp.Seed+1, stamp.Number+1
		copy(block, kept)
		m = codec.Check(block[:f.Interval], verify.Place{Block: offset}, &other, strict)
		if m == nil || !strings.Contains(m.Fault, "another write") {
			t.Fatalf("another write was not noticed: %v", m)
		}
	})
}

func TestFormatsThatCannotBeAreRefused(t *testing.T) {
	for _, f := range []verify.Format{
		{}, {Method: 6, Interval: 4096}, {Method: verify.ByPattern, Interval: 4096}, {Method: verify.MD5, Interval: 55},
		{Method: verify.MD5, Interval: 4096, HeaderOffset: 40}, {Method: verify.MD5, Interval: 4096, HeaderOffset: 4090},
	} {
		if f.Validate() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if _, ok := verify.MethodOf("crc31"); ok {
		t.Error("crc31 is a method")
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, name := range append(withHeader, "pattern", "null") {
		codec := newCodec(t, verify.Format{
			Method: methodOf(t, name), Interval: 4096, HeaderOffset: 300, Pattern: verify.Pattern{Bytes: []byte("12345678"), Offsets: []int{0}},
		})
		block := make([]byte, 8192)
		stamp := verify.Stamp{Seed: 1}
		if n := testing.AllocsPerRun(20, func() {
			codec.Stamp(block, 4096, stamp)
			for at := int64(0); at < 8192; at += codec.Step(8192) {
				if m := codec.Check(block[at:at+codec.Step(8192)], verify.Place{Block: 4096, Position: at}, &stamp, verify.Strict{}); m != nil {
					t.Fatal(m)
				}
			}
		}); n != 0 {
			t.Errorf("%s allocates %g times a block", name, n)
		}
	}
}

// Hostile bytes are never right, never crash and are left as they were.
func FuzzCheck(f *testing.F) {
	for i, name := range withHeader {
		codec := newCodec(f, verify.Format{Method: methodOf(f, name), Interval: 512})
		block := make([]byte, 512)
		codec.Stamp(block, int64(i)*512, verify.Stamp{Seed: 9, Number: 3, Thread: 1})
		f.Add(block, i, int64(i)*512, int64(0))
		f.Add(block, i, int64(0), int64(300))
	}
	f.Fuzz(func(t *testing.T, block []byte, method int, offset, at int64) {
		format := verify.Format{Method: methodOf(t, withHeader[max(0, method)%len(withHeader)]), Interval: int64(len(block)), HeaderOffset: at}
		if at < 0 || format.Validate() != nil {
			return
		}
		codec := verify.New(format)
		kept := bytes.Clone(block)
		m := codec.Check(block, verify.Place{Block: offset}, nil, verify.Strict{})
		if !bytes.Equal(kept, block) {
			t.Fatal("checking changed the block")
		}
		if m != nil && m.Error() == "" {
			t.Fatal("a fault without a name")
		}
		if m == nil && format.Method.Covers() {
			// What is right stays right when it is stamped again, and no header of another place is.
			if m := codec.Check(block, verify.Place{Block: offset + 1}, nil, verify.Strict{}); m == nil {
				t.Fatal("right at two places")
			}
		}
	})
}

func newCodec(t testing.TB, f verify.Format) *verify.Codec {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	return verify.New(f)
}

func checkAll(c *verify.Codec, data []byte, bs int64) *verify.Mismatch {
	step := c.Step(bs)
	for at := int64(0); at < int64(len(data)); at += step {
		place := verify.Place{Block: at / bs * bs, Position: at % bs}
		if m := c.Check(data[at:at+step], place, nil, verify.Strict{}); m != nil {
			return m
		}
	}
	return nil
}

func fillRandom(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
}

// A pattern that restarts every 512 bytes is what fio writes in blocks of 512.
func TestPatternInterval(t *testing.T) {
	testreq.Program(t, "fio")
	dir := t.TempDir()
	if out, err := runFio(t, dir, "--size=16k", "--bs=512", "--rw=write", "--do_verify=0", "--verify=pattern", `--verify_pattern=0x616263%o"xyz"`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := verify.Pattern{Bytes: []byte("abc\x00\x00\x00\x00\x00\x00\x00\x00xyz"), Offsets: []int{3}, Interval: 512}
	codec := newCodec(t, verify.Format{Method: verify.ByPattern, Pattern: pattern, Interval: 4096})
	if m := checkAll(codec, data, 4096); m != nil {
		t.Errorf("what fio wrote: %v", m)
	}
	block := make([]byte, 4096)
	codec.Stamp(block, 8192, verify.Stamp{})
	if !bytes.Equal(block, data[8192:8192+4096]) {
		t.Error("a block is not what fio wrote")
	}
	data[4096+1000] ^= 1
	if m := checkAll(codec, data, 4096); m == nil || m.Offset != 4096 {
		t.Errorf("a changed byte: %v", m)
	}
}

// After a header every byte is compared, even if the pattern restarts within an interval or the header has an offset.
func TestPatternsBehindHeaders(t *testing.T) {
	for _, f := range []verify.Format{{Interval: 4096}, {Interval: 1024}, {Interval: 4096, HeaderOffset: 700}} {
		for _, interval := range []int64{0, 512, 1000} {
			f.Method = methodOf(t, "pattern_hdr")
			f.Pattern = verify.Pattern{Bytes: []byte("0123456789abc"), Offsets: []int{2}, Interval: interval}
			codec, data := newCodec(t, f), make([]byte, 8192)
			for at := int64(0); at < 8192; at += 4096 {
				codec.Stamp(data[at:at+4096], at, verify.Stamp{Number: uint64(at), Thread: 1})
			}
			if m := checkAll(codec, data, 4096); m != nil {
				t.Fatalf("%+v: %v", f, m)
			}
			for at := 4096; at < 8192; at += 7 {
				data[at] ^= 1
				if m := checkAll(codec, data, 4096); m == nil || m.Offset != int64(at)/f.Interval*f.Interval {
					t.Fatalf("%+v: byte %d was changed: %v", f, at, m)
				}
				data[at] ^= 1
			}
		}
	}
}
