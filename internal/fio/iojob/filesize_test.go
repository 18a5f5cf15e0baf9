package iojob_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// lengths of the files below dir, by their names.
func lengths(t *testing.T, dir string) (out []int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "a.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Size())
	}
	return out
}

// Each file has a length of its own from a range of filesize: whole blocks, the same in every run with that seed. One pass is
// over all of them, and size bounds it, in fio as here.
func TestFileSizeRanges(t *testing.T) {
	const files, bs = 8, 4096
	job := "[a]\ndirectory=@\nrw=write\nbs=4k\nnrfiles=8\nfilesize=16k-256k\n%s"
	var drawn [][]int64
	for _, option := range []string{"", "", "randseed=7\n", "size=400k\n", "rw=randwrite\nio_size=4m\n"} {
		ours, theirs := t.TempDir(), t.TempDir()
		report := run(t, ours, fmt.Sprintf(job, option))
		text, _ := parse(t, theirs, fmt.Sprintf(job, option))
		var doc struct {
			Jobs []struct {
				Write struct {
					Bytes int64 `json:"io_bytes"`
				}
			}
		}
		if err := json.Unmarshal(fio(t, theirs, text, "--output-format=json"), &doc); err != nil {
			t.Fatal(err)
		}
		for who, dir := range map[string]string{"ours": ours, "fio": theirs} {
			all, written := lengths(t, dir), doc.Jobs[0].Write.Bytes
			if who == "ours" {
				written, drawn = int64(report.Rows[0].Directions[1].Bytes), append(drawn, all)
			}
			want, slack := int64(0), int64(0)
			for _, n := range all {
				want += n
				if n < 16<<10 || n > 256<<10 || n%bs != 0 {
					t.Errorf("%s, %q: a file of %d bytes", who, option, n)
				}
			}
			switch option {
			case "size=400k\n":
				want, slack = 400<<10, files*bs // each file gets whole blocks
			case "rw=randwrite\nio_size=4m\n":
				want = 4 << 20
			}
			if len(all) != files || written > want || written < want-slack || slices.Min(all) == slices.Max(all) {
				t.Errorf("%s, %q: wrote %d of %d to %v", who, option, written, want, all)
			}
		}
	}
	if !slices.Equal(drawn[0], drawn[1]) || slices.Equal(drawn[0], drawn[2]) || !slices.Equal(drawn[0], drawn[3]) {
		t.Errorf("lengths of two runs, of another seed, and with size: %v", drawn)
	}
}

// A job that only reads back finds the lengths that were written, also in files that have become longer since.
func TestFileSizeRangesAreFoundAgain(t *testing.T) {
	dir := t.TempDir()
	const job = "directory=@\nfilename=a.0:a.1:a.2\nrw=randwrite\nbs=4k\nfilesize=16k-256k\nverify=crc32c\n"
	written := run(t, dir, "[w]\n"+job+"do_verify=0\n")
	if err := os.Truncate(filepath.Join(dir, "a.1"), 1<<20); err != nil {
		t.Fatal(err)
	}
	read := run(t, dir, "[another]\n"+job+"verify_only\n")
	if err := read.Rows[0].Err; err != nil {
		t.Fatal(err)
	}
	if w, r := written.Rows[0].Directions[1].Bytes, read.Rows[0].Directions[0].Bytes; w == 0 || w != r {
		t.Errorf("%d bytes were written and %d read back", w, r)
	}
}
