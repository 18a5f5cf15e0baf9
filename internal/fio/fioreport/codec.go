package fioreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// A report is sent as JSON between machines that run the same build. Rows name their job by its index, because the receiver
// has the jobs; periods are sent separately, because they grow with the length of the run. All other fields of a row are
// copied as they are, including fields added later.

// rowFields has the fields of a Row, without its methods.
type rowFields Row

type wireRow struct {
	*rowFields
	Error *WireError `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (row Row) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireRow{rowFields: (*rowFields)(&row), Error: NewWireError(row.Err)})
}

// UnmarshalJSON implements json.Unmarshaler. Job stays empty: see Attach.
func (row *Row) UnmarshalJSON(text []byte) error {
	w := wireRow{rowFields: (*rowFields)(row)}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	row.Err = w.Error.Err()
	for d := range row.Directions {
		dir := &row.Directions[d]
		dir.Service, dir.Response = orEmpty(dir.Service), orEmpty(dir.Response)
		if dir.Runtime < 0 {
			return errors.New("read row: a time is out of bounds")
		}
	}
	if row.Runtime < 0 || row.StartNanos < 0 || row.StartNanos > math.MaxInt64-int64(row.Runtime) {
		return errors.New("read row: a time is out of bounds")
	}
	return nil
}

func orEmpty(h *stat.Histogram) *stat.Histogram {
	if h == nil {
		return &stat.Histogram{}
	}
	return h
}

// Attach gives the rows of a received report their jobs, which must be the jobs that were run.
func (r *Report) Attach(jobs []fiojob.Job) error {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.JobIndex < 0 || row.JobIndex >= len(jobs) {
			return fmt.Errorf("read report: row %q is of job %d, and there are %d", row.Name, row.JobIndex, len(jobs))
		}
		row.Job = jobs[row.JobIndex]
	}
	return nil
}

// Period is the work of a row in one period, by direction. It ends at EndNanos on the axis of the run.
type Period struct {
	EndNanos    int64                            `json:"e"`
	LengthNanos int64                            `json:"l"`
	Operations  [interval.DirectionCount]float64 `json:"o"`
	Bytes       [interval.DirectionCount]float64 `json:"b"`
}

// Periods returns at most count of the row's periods, from the given one on.
func (row *Row) Periods(from, count int) []Period {
	from = min(max(from, 0), len(row.samples))
	list := row.samples[from:min(from+count, len(row.samples))]
	out := make([]Period, len(list))
	for i, s := range list {
		out[i] = Period{s.end, s.length, s.operations, s.bytes}
	}
	return out
}

// PeriodCount returns how many periods the row has.
func (row *Row) PeriodCount() int { return len(row.samples) }

// SetPeriods replaces the row's periods.
func (row *Row) SetPeriods(list []Period) {
	row.samples = make([]sample, len(list))
	for i, p := range list {
		row.samples[i] = sample{p.EndNanos, p.LengthNanos, p.Operations, p.Bytes}
	}
}

// WireError is an error as it is sent, with the number of the operating system that outputs show.
type WireError struct {
	diag.Wire
	Number int `json:"errno,omitempty"`
}

// NewWireError returns err in the form in which it is sent; nil for nil.
func NewWireError(err error) *WireError {
	if err == nil {
		return nil
	}
	w := &WireError{Wire: diag.ToWire(err)}
	var number syscall.Errno
	if errors.As(err, &number) {
		w.Number = int(number)
	}
	return w
}

// Err returns the error that was sent; nil for nil.
func (w *WireError) Err() error {
	if w == nil {
		return nil
	}
	err := w.Wire.Err()
	var userErr *diag.Error
	if w.Number > 0 && errors.As(err, &userErr) {
		return &numbered{userErr, syscall.Errno(w.Number)}
	}
	return err
}

// numbered is a received error with the number of its original error of the operating system.
type numbered struct {
	userErr *diag.Error
	number  syscall.Errno
}

func (n *numbered) Error() string   { return n.userErr.Error() }
func (n *numbered) Unwrap() []error { return []error{n.userErr, n.number} }
