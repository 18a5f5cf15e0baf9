package hammerdb_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// Results of runs with the Tcl of Debian; the transaction counter ran only with MySQL.
var results = map[string]struct {
	result hammerdb.Result
	users  int
	counts []uint64
}{
	"4.12-postgresql.txt": {hammerdb.Result{NOPM: 6376, TPM: 14701, Database: "PostgreSQL"}, 2, nil},
	"4.11-run.txt":        {hammerdb.Result{NOPM: 16689, TPM: 38074, Database: "PostgreSQL"}, 2, nil},
	"4.12-run.txt":        {hammerdb.Result{NOPM: 18669, TPM: 43018, Database: "PostgreSQL"}, 2, nil},
	"5.0-run.txt":         {hammerdb.Result{NOPM: 58855, TPM: 134517, Database: "PostgreSQL"}, 2, nil},
	"4.12-mysql.txt":      {hammerdb.Result{NOPM: 4673, TPM: 11132, Database: "MySQL"}, 3, []uint64{0, 9780, 9948, 21048, 11934, 9090, 5136}},
}

// Output that was cut anywhere is a failure, or has the result of the whole output.
func TestResults(t *testing.T) {
	for name, want := range results {
		text := loadtest.Recorded(t, name)
		o, err := hammerdb.ParseOutput(text)
		if err != nil || o.Err() != nil || o.Result == nil || *o.Result != want.result || o.Succeeded != want.users {
			t.Fatalf("%s: %+v, %v, %v", name, o, err, o.Err())
		}
		var counts []uint64
		for _, c := range o.Counter {
			counts = append(counts, c.TPM)
		}
		if !reflect.DeepEqual(counts, want.counts) {
			t.Errorf("%s: counter %v", name, counts)
		}
		for end := range text {
			cut, err := hammerdb.ParseOutput(text[:end])
			if err != nil || cut.Err() == nil && !reflect.DeepEqual(cut, o) || cut.Result != nil && *cut.Result != want.result {
				t.Errorf("%s cut after %d bytes: %+v, %v", name, end, cut, err)
			}
		}
		if _, err := hammerdb.ParseOutput(text + text); err == nil {
			t.Errorf("%s twice is not refused", name)
		}
	}
}

// Recorded calls that HammerDB ended with 0, by what failed; "" for those that did not. all-failed has the beginning and the end of a test
// whose transactions all failed.
var calls = map[string]string{
	"unreachable.txt": "Connection to database failed", "unbuilt.txt": "schema is empty", "built-before.txt": "exists but is not empty",
	"build.txt": "", "check.txt": "", "delete.txt": "", "all-failed.txt": "no new order in the whole test",
}

// Output that was cut anywhere is a failure, or has all that the whole output has.
func TestCalls(t *testing.T) {
	for name, want := range calls {
		for _, version := range []string{"4.11", "4.12", "5.0"} {
			file := version + "-" + name
			if name == "all-failed.txt" {
				file = "4.11-" + name
			}
			text := loadtest.Recorded(t, file)
			whole, err := hammerdb.ParseOutput(text)
			if err != nil || !whole.Complete || (whole.Err() == nil) != (want == "") || want != "" && !strings.Contains(whole.Err().Error(), want) {
				t.Errorf("%s: %+v, %v, %v, want %q", file, whole, err, whole.Err(), want)
			}
			for end := range text {
				cut, err := hammerdb.ParseOutput(text[:end])
				if err != nil || cut.Err() == nil && !reflect.DeepEqual(cut, whole) {
					t.Fatalf("%s cut after %d bytes: %+v, %v", file, end, cut, err)
				}
			}
		}
	}
	if o, _ := hammerdb.ParseOutput(loadtest.Recorded(t, "4.11-all-failed.txt")); o.FailedCalls < 10 || o.Failed != 0 || o.Succeeded != 2 {
		t.Errorf("%+v", o)
	}
}

func TestNewOrderShare(t *testing.T) {
	for r, want := range map[hammerdb.Result][2]float64{
		{NOPM: 6376, TPM: 14701}: {0.433, 0.434}, {NOPM: 4673, TPM: 11132}: {0.419, 0.420}, {}: {0, 0},
	} {
		if got := r.NewOrderShare(); got < want[0] || got > want[1] {
			t.Errorf("%+v: %v", r, got)
		}
	}
}

// The recorded file has two reports. The last one counts, or the first one if the file was cut before the last one begins.
func TestProfile(t *testing.T) {
	text := loadtest.Recorded(t, "4.12-profile.log")
	second := strings.Index(text, "MySQL Hammerdb")
	begun := second + strings.Index(text[second:], "\n") + 1
	first, err := hammerdb.ParseProfile(text[:second])
	if err != nil || len(first) != 1 || len(first[0].Procedures) != 5 {
		t.Fatalf("%+v, %v", first, err)
	}
	want := hammerdb.Procedure{Name: "NEWORD", Calls: 6686, Min: 422 * time.Microsecond, Mean: 4951 * time.Microsecond,
		Max: 2227581 * time.Microsecond, Total: 33104153 * time.Microsecond, P50: 1494 * time.Microsecond, P95: 12296 * time.Microsecond,
		P99: 30433 * time.Microsecond, StandardDeviation: 35641105 * time.Nanosecond}
	if got := first[0].Procedures[0]; got != want || first[0].User != 2 || first[0].Elapsed != 69123*time.Millisecond {
		t.Errorf("%+v, want %+v", first[0], want)
	}
	last, err := hammerdb.ParseProfile(text)
	if err != nil || len(last) != 2 || last[0].Procedures[0].Calls+last[1].Procedures[0].Calls != 2192+2583 {
		t.Fatalf("%+v, %v", last, err)
	}
	for end := range text {
		got, err := hammerdb.ParseProfile(text[:end])
		whole := last
		if end < begun {
			whole = first
		}
		if err == nil && !reflect.DeepEqual(got, whole) {
			t.Errorf("cut after %d bytes: %+v", end, got)
		}
	}
}

// Version 6.0 prints its profile in another format. The file does not come from a load: the module xtprof of that version
// printed it, for procedures of two users that only waited.
func TestProfileOfVersion6(t *testing.T) {
	text := loadtest.Recorded(t, "6.0-profile.log")
	users, err := hammerdb.ParseProfile(text)
	if err != nil || len(users) != 2 || len(users[1].Procedures) != 5 {
		t.Fatalf("%+v, %v", users, err)
	}
	want := hammerdb.Procedure{Name: "NEWORD", Calls: 376, Min: 202 * time.Microsecond, Mean: 2441 * time.Microsecond,
		Max: 91781 * time.Microsecond, Total: 917891 * time.Microsecond, P50: 1351 * time.Microsecond, P95: 6767 * time.Microsecond,
		P99: 12021 * time.Microsecond, StandardDeviation: 5216 * time.Microsecond}
	if got := users[1].Procedures[0]; got != want || users[1].User != 3 || users[1].Elapsed != 1599*time.Millisecond {
		t.Errorf("%+v, want %+v", users[1], want)
	}
	many, err := hammerdb.ParseProfile(strings.Replace(text, "CALLS: 376", "CALLS: 10001", 1))
	if err != nil || !many[1].Procedures[0].Sampled || many[1].Procedures[1].Sampled {
		t.Errorf("10,001 calls: %+v, %v", many, err)
	}
	for end := range text {
		if got, err := hammerdb.ParseProfile(text[:end]); err == nil && !reflect.DeepEqual(got, users) {
			t.Errorf("cut after %d bytes: %+v", end, got)
		}
	}
}

func TestBadProfiles(t *testing.T) {
	text := loadtest.Recorded(t, "4.12-profile.log")
	for name, bad := range map[string]string{
		"no calls":       strings.ReplaceAll(text, "CALLS: 2249", "CALLS: many"),
		"no percentiles": strings.ReplaceAll(text, "P99: 176.681ms", "P99: slow"),
		"no procedure":   strings.Replace(text, ">>>>> PROC: NEWORD", "", -1),
		"empty":          "",
	} {
		if got, err := hammerdb.ParseProfile(bad); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Whatever is read, a success has users that ended, and a profile has all numbers of its procedures.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/[4-6].*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%d seeds, %v", len(seeds), err)
	}
	for _, seed := range seeds {
		f.Add(loadtest.Recorded(f, filepath.Base(seed)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := hammerdb.ParseOutput(text); err == nil && o.Err() == nil && (!o.Complete || o.Succeeded == 0 || o.Failed > 0) {
			t.Errorf("%+v", o)
		}
		users, err := hammerdb.ParseProfile(text)
		if err != nil {
			return
		}
		for _, u := range users {
			for _, p := range u.Procedures {
				if p.Calls == 0 || p.Min < 0 || p.Total < 0 || p.StandardDeviation < 0 {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}
