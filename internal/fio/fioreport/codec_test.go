package fioreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/stat"
)

// fillIn gives every exported field that v reaches a value of its own.
func fillIn(v reflect.Value, next *int) {
	*next++
	switch v.Type() {
	case reflect.TypeFor[stat.Histogram]():
		h := v.Addr().Interface().(*stat.Histogram)
		h.Record(uint64(1000 * *next))
		h.RecordN(uint64(*next), 3)
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(int64(*next), 17).UTC()))
		return
	case reflect.TypeFor[fiojob.Job](), reflect.TypeFor[error]():
		return // see WireError and Attach
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillIn(v.Field(i), next)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fillIn(v.Index(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillIn(v.Index(i), next)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillIn(key, next)
		fillIn(value, next)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*next) + 0.5)
	case reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(uint64(*next % 200))
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*next))
	default:
		panic("the test does not know how to fill in a " + v.Type().String())
	}
}

// Whatever a report has, and will have, arrives on the other side.
func TestReportTravelsWhole(t *testing.T) {
	var sent, got Report
	next := 0
	fillIn(reflect.ValueOf(&sent).Elem(), &next)
	text, err := json.Marshal(&sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "IOEngine") {
		t.Error("jobs travel with their rows")
	}
	if string(again) != string(text) {
		t.Errorf("a report changes on its way:\n%s\n%s", text, again)
	}
	// Spare capacity of histograms differs between the two, which does not matter.
	for i := range sent.Rows {
		for d := range sent.Rows[i].Directions {
			for _, pair := range [][2]*stat.Histogram{
				{sent.Rows[i].Directions[d].Service, got.Rows[i].Directions[d].Service},
				{sent.Rows[i].Directions[d].Response, got.Rows[i].Directions[d].Response},
			} {
				if pair[0].Count() != pair[1].Count() || pair[0].Count() == 0 {
					t.Errorf("a histogram of %d values arrives with %d", pair[0].Count(), pair[1].Count())
				}
				*pair[0], *pair[1] = stat.Histogram{}, stat.Histogram{}
			}
		}
		if sent.Rows[i].Account.Syncs.Count() != got.Rows[i].Account.Syncs.Count() {
			t.Error("the histogram of syncs is lost")
		}
		sent.Rows[i].Account.Syncs, got.Rows[i].Account.Syncs = stat.Histogram{}, stat.Histogram{}
	}
	if !reflect.DeepEqual(sent, got) {
		t.Errorf("sent\n%+v\ngot\n%+v", sent, got)
	}
}

func TestErrorsTravel(t *testing.T) {
	refused := &diag.Error{Code: "device-write", Message: "no", Hint: "hint", Exit: diag.ExitRefused}
	for _, sent := range []error{
		nil, errors.New("plain"), fmt.Errorf("write: %w", syscall.ENOSPC), fmt.Errorf("open: %w", refused),
		&diag.ListError{List: diag.List{{Code: "a", Severity: diag.SeverityError, Message: "b", Pos: diag.Position{File: "f", Line: 3}}}},
	} {
		text, err := json.Marshal(NewWireError(sent))
		if err != nil {
			t.Fatal(err)
		}
		var w *WireError
		if err := json.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		got := w.Err()
		if sent == nil {
			if got != nil {
				t.Errorf("nil arrives as %v", got)
			}
			continue
		}
		if got.Error() != sent.Error() || diag.ExitCode(got) != diag.ExitCode(sent) || errno(got) != errno(sent) {
			t.Errorf("%v (exit %d, errno %d) arrives as %v (exit %d, errno %d)", sent, diag.ExitCode(sent), errno(sent), got, diag.ExitCode(got), errno(got))
		}
	}
}

// A row that gets another field must say how the rows of several hosts make one.
func TestMergeKnowsEveryField(t *testing.T) {
	known := []string{
		"Name", "Job", "JobIndex", "Engine", "Clones", "PID", "Number", "Group", "Err", "StartNanos", "Runtime", "Directions", "Account",
		"Due", "NotIssued", "BacklogMax", "Stalled", "LogWait", "Strain", "Depth", "DropAfter", "samples",
		"Steady", // each host settles by itself: a row of all hosts has none
	}
	for f := range reflect.TypeFor[Row]().Fields() {
		if !slices.Contains(known, f.Name) {
			t.Errorf("mergeRows does nothing with Row.%s: make it do what is right, and name it here", f.Name)
		}
	}
	for f := range reflect.TypeFor[Direction]().Fields() {
		if !slices.Contains([]string{"Operations", "Bytes", "Errors", "Runtime", "Service", "Response", "Bandwidth", "IOPS"}, f.Name) {
			t.Errorf("mergeDirections does nothing with Direction.%s: make it do what is right, and name it here", f.Name)
		}
	}
}

func TestBadReportsAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"Runtime":-1}`, `{"StartNanos":-5}`, `{"StartNanos":9223372036854775807,"Runtime":2}`, `{"Directions":[{"Runtime":-3}]}`,
		`{"Directions":[{"Service":{"n":3,"sum":1,"sq":1,"min":1,"max":1,"b":"a"}}]}`,
	} {
		var row Row
		if err := json.Unmarshal([]byte(text), &row); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	r := Report{Rows: []Row{{JobIndex: 1}}}
	if err := r.Attach(make([]fiojob.Job, 1)); err == nil {
		t.Error("a row of a job that is not there is read")
	}
}
