package verifying

import (
	"sync/atomic"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Outcome is the result of verification.
type Outcome struct {
	// VerifyNanos is how long what was written was read back. MismatchCount counts the parts of it, and of what was read
	// to be checked, that were not as written; Mismatches are lines about the first of them.
	VerifyNanos   int64
	MismatchCount uint64
	Mismatches    []string
	// SurveyedBytes is how much of what was to be verified was found by its headers, where it was written in another order.
	// SurveyVague: how much was written is not known exactly there, so that a block which lost its header may not be noticed.
	// SurveyNanos is how long a job that only reads took for that, besides its own reads; these are not counted.
	SurveyedBytes int64
	SurveyVague   bool
	SurveyNanos   int64
}

// Add merges the outcome of other lanes.
func (o *Outcome) Add(of *Outcome) {
	o.VerifyNanos = max(o.VerifyNanos, of.VerifyNanos)
	o.SurveyedBytes += of.SurveyedBytes
	o.SurveyVague = o.SurveyVague || of.SurveyVague
	o.SurveyNanos = max(o.SurveyNanos, of.SurveyNanos)
	o.MismatchCount += of.MismatchCount
	o.Mismatches = append(o.Mismatches, of.Mismatches...)
}

// Report is the exchange between a worker and its verifiers.
type Report struct {
	*Outcome
	Stop    *atomic.Bool // the load is to end
	Devices []load.Device
	Dumps   string // folder for verify_dump; "": none
	Wrong   int    // operations that read wrong data, and are not yet counted
}

// took notes how long a verification read back, apart from the time of a job that only reads.
func (w *Report) took(spec *program.Verification, nanos int64) {
	if spec.Reads {
		w.SurveyNanos += max(0, nanos)
		return
	}
	w.VerifyNanos += max(0, nanos)
}
