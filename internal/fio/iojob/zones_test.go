package iojob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
)

var loggedWrite = regexp.MustCompile(`(?m)^\d+ \S+ write (\d+) (\d+)$`)

// TestZonesAsInFio: a zone has zonerange bytes, of which a job moves zonesize before it goes on: less than all of them, or
// some of them again.
func TestZonesAsInFio(t *testing.T) {
	for _, zones := range []string{
		"zonesize=64k\nzonerange=32k\nzoneskip=64k\n", "zonesize=32k\nzonerange=64k\nzoneskip=64k\n", "zonesize=64k\nzoneskip=64k\n",
		"zonesize=64k\nzonerange=64k\n",
	} {
		for _, rw := range []string{"write", "randwrite"} {
			dir := t.TempDir()
			text := fmt.Sprintf("[a]\nioengine=null\nfilename=%s/f\nfilesize=1m\nsize=1m\nio_size=256k\nbs=4k\nrw=%s\nzonemode=strided\n%s", dir, rw, zones)
			_, file := parse(t, dir, text)
			extents, err := region.Of(&file.Jobs()[0], func(string) (int64, bool) { return 1 << 20, true })
			if err != nil {
				t.Fatal(err)
			}
			var ours []int64
			for _, p := range plan(t, dir, text, 0) {
				if p.Op == "write" {
					ours = append(ours, p.Offset)
				}
			}
			checkZones(t, "bragg "+text, ours, extents)
			if testing.Short() {
				continue
			}
			if out, err := runFio(t, dir, text+"write_iolog="+dir+"/log\n"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			log, err := os.ReadFile(filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			var theirs []int64
			for _, m := range loggedWrite.FindAllSubmatch(log, -1) {
				offset, _ := strconv.ParseInt(string(m[1]), 10, 64)
				theirs = append(theirs, offset)
			}
			checkZones(t, "fio "+text, theirs, extents)
			if rw == "write" && !slices.Equal(ours, theirs) {
				t.Errorf("%s: bragg writes to %v, fio to %v", zones, ours, theirs)
			}
		}
	}
}

// checkZones wants 64 operations inside of the extents, which are visited in their order and none left out.
func checkZones(t *testing.T, who string, offsets []int64, extents []extent.Extent) {
	t.Helper()
	at := 0
	for _, offset := range offsets {
		inside := func(e extent.Extent) bool { return e.Offset <= offset && offset+4096 <= e.Offset+e.Length }
		if at < len(extents)-1 && !inside(extents[at]) && inside(extents[at+1]) {
			at++
		}
		if !inside(extents[at]) {
			t.Fatalf("%s: offset %d is not in zone %d, %+v", who, offset, at, extents[at])
		}
	}
	if len(offsets) != 64 || at == 0 {
		t.Errorf("%s: %d operations in %d zones", who, len(offsets), at+1)
	}
}
