package iojob_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/iojob"
)

// A caller that wants to is called when the jobs of each phase are prepared, and sets their start time; periods count from
// there.
func TestStartIsAgreed(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[global]\ndirectory=@\nsize=64k\nrw=write\n[a]\n[b]\nstonewall\n")
	var phases []int
	var asked []time.Time
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Start: func(_ context.Context, r iojob.Ready) (time.Time, error) {
		if len(r.Faults) > 0 {
			t.Errorf("faults %v", r.Faults)
		}
		at := time.Now().Add(50 * time.Millisecond)
		phases, asked = append(phases, r.Phase), append(asked, at)
		return at, nil
	}})
	if err != nil || !slices.Equal(phases, []int{0, 1}) {
		t.Fatalf("asked for phases %v, %v", phases, err)
	}
	for i, row := range report.Rows {
		begun := report.Started.Add(time.Duration(row.Account.StartNanos))
		if begun.Before(asked[i]) {
			t.Errorf("row %d began %v before its time", i, asked[i].Sub(begun))
		}
		if row.Directions[1].Bytes != 64<<10 {
			t.Errorf("row %d wrote %d bytes", i, row.Directions[1].Bytes)
		}
	}
	if d := asked[0].Sub(report.Started); d < 0 || d > 10*time.Millisecond {
		t.Errorf("the axis begins %v before the first start", d)
	}
}

// Where the start is refused nothing runs, and nothing stays open.
func TestStartIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=64k\nrw=write\n")
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Start: func(context.Context, iojob.Ready) (time.Time, error) {
		return time.Time{}, errors.New("not now")
	}})
	if err != nil || report.Rows[0].Directions[1].Operations != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == filepath.Join(dir, "f") {
			t.Error("the file stays open")
		}
	}
}

// Hosts write to different places with the same seed, and each of them to the same ones again.
func TestHostsDiffer(t *testing.T) {
	written := func(host int) string {
		dir := t.TempDir()
		_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=1m\nio_size=64k\nrw=randwrite\nrandseed=7\n")
		if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Host: host}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	one, again, other := written(1), written(1), written(2)
	if one != again {
		t.Error("a host does not repeat what it did")
	}
	if one == other {
		t.Error("two hosts write the same")
	}
}

// A seed that is named counts, also with randrepeat=0, as in fio; without one each run draws its own.
func TestNamedSeedIsRepeated(t *testing.T) {
	written := func(options string) string {
		dir := t.TempDir()
		_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=1m\nio_size=64k\nrw=randwrite\n"+options)
		if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, repeat := range []string{"randrepeat=0\n", "allrandrepeat=0\n"} {
		if one, again := written(repeat+"randseed=7\n"), written(repeat+"randseed=7\n"); one != again {
			t.Errorf("%q: the seed that the job names is not its seed", repeat)
		}
		if one, other := written(repeat), written(repeat); one == other {
			t.Errorf("%q: two runs write the same", repeat)
		}
	}
}
