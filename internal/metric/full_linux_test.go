package metric_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// smallDisk mounts a file system of so many bytes for the time of the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	testreq.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A broken store keeps its files open until the program ends.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// batch is one scrape at so many seconds: 500 series whose values do not compress.
func batch(second int) []result.Sample {
	out := make([]result.Sample, 500)
	for i := range out {
		out[i] = result.Sample{
			AtNanos: int64(second) * 1e9, Name: "x", Labels: map[string]string{"i": fmt.Sprint(i)}, Value: 1 / float64(second*len(out)+i+1),
		}
	}
	return out
}

// untilBroken appends five hours of samples, at most, until the store refuses them.
func untilBroken(t *testing.T, s *metric.Store, at func(second int)) error {
	t.Helper()
	for second := 0; second < 5*3600; second += 5 {
		if at != nil {
			at(second)
		}
		if err := s.AppendSamples(batch(second)); err != nil {
			return err
		}
		if second%300 == 0 {
			if err := s.Flush(); err != nil {
				return err
			}
			metric.Upkeep(s)
		}
	}
	return s.Persist()
}

// TestFullDiskBreaksTheStoreOnly: chunks that cannot be written are an error, not the end of the program, and every later
// call of the store returns.
func TestFullDiskBreaksTheStoreOnly(t *testing.T) {
	for _, size := range []string{"256k", "1m", "4m"} { // the first chunk, a later one, a block
		t.Run(size, func(t *testing.T) {
			s, err := metric.Open(filepath.Join(smallDisk(t, size), metric.Dir), testManifest)
			if err == nil {
				err = untilBroken(t, s, nil)
				wantBroken(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRemovedFolderBreaksTheStoreOnly: the same when the directory is removed.
func TestRemovedFolderBreaksTheStoreOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), metric.Dir)
	s, err := metric.Open(dir, testManifest)
	if err != nil {
		t.Fatal(err)
	}
	err = untilBroken(t, s, func(second int) {
		if second == 600 {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	wantBroken(t, s)
}

func wantBroken(t *testing.T, s *metric.Store) {
	t.Helper()
	select {
	case <-s.Broken():
	default:
		t.Error("the store is not broken")
	}
	_, rangeErr := s.Range(t.Context(), "x", metric.Window{ToNanos: 5e9, Step: time.Second})
	_, instantErr := s.Instant(t.Context(), "x", 5e9)
	for what, err := range map[string]error{
		"err": s.Err(), "append": s.AppendSamples(batch(1)), "interval": s.AppendInterval(anInterval(0, 1)), "flush": s.Flush(),
		"range": rangeErr, "instant": instantErr, "persist": s.Persist(), "close": s.Close(),
	} {
		if err == nil {
			t.Errorf("%s of a broken store succeeds", what)
		}
	}
}

// TestLongRunIsRebuiltWhole: samples of the first minutes are not too old for a store that has the intervals of five hours.
func TestLongRunIsRebuiltWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, testManifest)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for second := range 5 * 3600 {
		if err := w.Interval(*anInterval(0, second)); err != nil {
			t.Fatal(err)
		}
		if second%10 == 0 {
			if err := w.Sample(result.Sample{AtNanos: int64(second) * 1e9, Name: "x", Value: float64(second)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := metric.Rebuild(t.Context(), b, filepath.Join(dir, metric.Dir))
	if err != nil {
		t.Fatal(err)
	}
	check := func(s *metric.Store) {
		t.Helper()
		for _, at := range []int64{0, 600, 9000, 17990} {
			if got := one(t, s, "x", at*1e9); got != float64(at) {
				t.Errorf("at %d s the sample is %v", at, got)
			}
			if got := one(t, s, `sum(rate(bragg_operations_total[10s]))`, (at+10)*1e9); got < 50 {
				t.Errorf("at %d s the rate is %v", at+10, got)
			}
		}
	}
	check(s)
	if err := s.Persist(); err != nil {
		t.Fatal(err)
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := metric.Open(filepath.Join(dir, metric.Dir), testManifest)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check(again)
}
