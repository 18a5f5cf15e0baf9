package fiojob_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/testreq"
)

var patterns = map[string]string{
	"0xdeadbeef": "\xde\xad\xbe\xef", "0xabc": "\x0a\xbc", "0XFF": "\xff", "0x0000ff": "\x00\x00\xff", "12": "\x0c",
	"-12": "\xf4\xff\xff\xff", "1234567": "\x87\xd6\x12", "256": "\x00\x01", "0": "\x00", "010": "\x0a", "1+2": "\x01\x02",
	`"abcd"`: "abcd", `"ab"-12`: "ab\xf4\xff\xff\xff", `0x01"ab"0x02 7`: "\x01ab\x02\x07", `"it's"`: "it's", `12"a"`: "\x0ca",
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for text, want := range patterns {
		if got := only(t, "[a]\nbuffer_pattern="+text+"\n").Content.Pattern; string(got) != want {
			t.Errorf("%s: %x, want %x", text, got, want)
		}
	}
	for _, text := range []string{
		"abcd", `"abc`, "0x", "0xg", "0b1", "-0x10", "12abc", "%o", "4294967295", "4294967296", `""`, "-", `"abc" 0x01x`,
		`"` + strings.Repeat("a", 513) + `"`,
	} {
		if _, diags := fiojob.Parse("a.fio", "[a]\nbuffer_pattern="+text+"\n", fiojob.Options{}); !diags.HasErrors() {
			t.Errorf("%s is taken", text)
		}
	}
	_, diags := fiojob.Parse("a.fio", "[a]\nbuffer_pattern=0x12'/etc/passwd'\n", fiojob.Options{})
	if err := diags.Err(); err == nil || !strings.Contains(err.Error(), "opens a file") {
		t.Errorf("a file as a pattern: %v", err)
	}
}

// What fio writes with a pattern is that pattern, again and again.
func TestPatternsAreWhatFioWrites(t *testing.T) {
	program, dir := testreq.Program(t, "fio"), t.TempDir()
	for text, want := range patterns {
		file := filepath.Join(dir, "written")
		said, err := exec.Command(program, "--name=a", "--rw=write", "--size=4k", "--filename="+file, "--buffer_pattern="+text).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", text, err, said)
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(bytes.Repeat([]byte(want), 4096), got) {
			t.Errorf("%s: fio writes %x, want %x", text, got[:16], want)
		}
	}
}

func TestContentOptions(t *testing.T) {
	t.Parallel()
	j := only(t, "[a]\nbuffer_compress_percentage=30\nbuffer_compress_chunk=4k\ndedupe_percentage=20\ndedupe_mode=repeat\nrefill_buffers\n")
	if c := j.Content; c.CompressPercent != 30 || c.CompressChunkBytes != 4096 || c.DedupePercent != 20 || !j.RefillBuffers {
		t.Errorf("%+v", c)
	}
	if c := only(t, "[a]\nrw=write\n").Content; c.CompressChunkBytes != 512 || c.CompressPercent != 0 {
		t.Errorf("without options %+v", c)
	}
}
