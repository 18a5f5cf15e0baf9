package fiojob_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

var patterns = map[string]string{
	"0xdeadbeef": "\xde\xad\xbe\xef", "0xabc": "\x0a\xbc", "0XFF": "\xff", "0x0000ff": "\x00\x00\xff", "12": "\x0c",
	"-12": "\xf4\xff\xff\xff", "1234567": "\x87\xd6\x12", "256": "\x00\x01", "0": "\x00", "010": "\x0a", "1+2": "\x01\x02",
	`"abcd"`: "abcd", `"ab"-12`: "ab\xf4\xff\xff\xff", `0x01"ab"0x02 7`: "\x01ab\x02\x07", `"it's"`: "it's", `"abcd"-120xdeadface`: "abcd\xf4\xff\xff\xff\xde\xad\xfa\xce", "120x12": "\x0c\x12", `12"a"`: "\x0ca",
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
		`"` + strings.Repeat("a", 1<<20+1) + `"`,
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

// A file as a pattern is read where jobs run as fio runs them, below the folder of the job file and nowhere else.
func TestPatternFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pattern"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := fiojob.Options{Host: true, FS: os.DirFS(dir)}
	for _, option := range []string{"buffer_pattern", "verify=crc32c\nverify_pattern"} {
		text := "[a]\nrw=write\nsize=4k\n" + option + `="ab"'pattern'0x01` + "\n"
		file, diags := fiojob.Parse("a.fio", text, o)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		j := file.Jobs()[0]
		if got := string(append(j.Content.Pattern, j.Verify.Pattern...)); got != "abhello\x01" {
			t.Errorf("%s: %q", option, got)
		}
	}
	for _, name := range []string{"'none'", "'../etc/passwd'", "'/etc/passwd'", "'pattern", "'.'"} {
		if _, diags := fiojob.Parse("a.fio", "[a]\nbuffer_pattern="+name+"\n", o); !diags.HasErrors() {
			t.Errorf("%s is taken", name)
		}
	}
	// What the folder of the job file does not have is looked for in the current one, and fio looks nowhere else.
	work := t.TempDir()
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	if err := errors.Join(os.WriteFile(filepath.Join(work, "pattern"), []byte("current"), 0o600),
		os.WriteFile(filepath.Join(work, "long"), long, 0o600)); err != nil {
		t.Fatal(err)
	}
	o.WorkFS = os.DirFS(work)
	for reading, want := range map[syntax.Reading]string{syntax.Meant: "hello" + string(long), syntax.Exact: "current" + string(long)} {
		o.Reading = reading
		file, diags := fiojob.Parse("a.fio", "[a]\nrw=write\nsize=4k\nbuffer_pattern='pattern''long'\n", o)
		if diags.HasErrors() || string(file.Jobs()[0].Content.Pattern) != want {
			t.Errorf("reading %v: %v", reading, diags.Err())
		}
	}
	program := testreq.Program(t, "fio")
	c := exec.Command(program, "--name=a", "--rw=write", "--size=4k", "--filename=written", `--buffer_pattern="ab"'pattern'0x01`)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if written, err := os.ReadFile(filepath.Join(dir, "written")); err != nil || !bytes.HasPrefix(written, []byte("abhello\x01abhello\x01")) {
		t.Errorf("fio wrote %q, %v", written[:16], err)
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
