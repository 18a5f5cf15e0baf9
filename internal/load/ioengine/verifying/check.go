package verifying

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// check compares what an operation read with what should be there, interval by interval.
func (v *Verifier) check(w *Report, l *queue.Queue, s *backend.Slot) error {
	var want *verify.Stamp
	var stamp verify.Stamp
	if v.state == verifyReading && !v.survey.under {
		stamp = v.stampOf(&l.Streams[s.Stream], s.Number)
		want = &stamp
	}
	step := v.codec.Step(s.Size)
	if v.source != nil && v.spec.Format.HeaderBytes() == 0 {
		step = min(step, v.source.grain(s.Size))
	}
	wrong, absent := false, false
	for at := int64(0); at+step <= s.Size; at += step {
		part, place, holds := s.Buffer[at:at+step], verify.Place{Block: s.Offset, Position: at}, holdsWrite
		if v.source != nil {
			holds = v.source.holds(s, at, step)
		}
		var m *verify.Mismatch
		switch holds {
		case holdsOther:
			continue
		case holdsZeroes:
			m = zeroFault(part, place)
		default:
			m = v.codec.Check(part, place, want, v.spec.Strict)
		}
		if m == nil && holds == holdsWrite && want != nil && !v.spec.Only && v.spec.Format.Method == verify.SHA512 {
			m = v.compare(l, s, at, part)
		}
		switch {
		case v.survey.under && !v.survey.judge(m, step), m == nil && !v.survey.possible:
			continue
		case !v.survey.under && holds == holdsWrite && v.survey.note(m, verify.ReadHeader(part, v.spec.Format.HeaderOffset), want, step):
			absent = true
			v.postpone(w, s, m, want)
			continue
		case m == nil:
			continue
		}
		wrong = true
		v.report(w, l, s, m, want)
		if v.spec.Fatal {
			break
		}
	}
	if wrong {
		w.Wrong++
	} else if absent {
		v.survey.absent++
	}
	settled := v.survey.own && v.settlePostponed(w, l)
	if (wrong || settled) && v.spec.Fatal && !v.spec.Tolerant {
		return v.failure
	}
	return nil
}

// mismatchesMax bounds the lines about wrong data that are kept of one worker, and dumpsMax the blocks that a lane dumps.
const (
	mismatchesMax = 32
	dumpsMax      = 1000
)

// report keeps what is to be said about a wrong interval.
func (v *Verifier) report(w *Report, l *queue.Queue, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) {
	text := v.describe(w.Devices[s.Device].Name, m, want)
	if v.survey.doubt != "" {
		text += "; " + v.survey.doubt
	}
	if v.spec.Dump && w.Dumps != "" && s.Buffer != nil {
		text += v.dump(w, l, s, m, want)
	}
	if v.failure == nil && !v.spec.Tolerant {
		v.failure = verificationError(text)
	}
	w.MismatchCount++
	if len(w.Mismatches) < mismatchesMax {
		w.Mismatches = append(w.Mismatches, text)
	}
}

// dump writes what was read, and what should have been there as far as that is known, into files named as fio does. It
// returns what to say about it.
func (v *Verifier) dump(w *Report, l *queue.Queue, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) string {
	if v.dumps++; v.dumps > dumpsMax {
		return ""
	}
	name := fmt.Sprintf("%s.%d", filepath.Base(w.Devices[s.Device].Name), m.Offset)
	from, to := m.Place.Position, m.Place.Position+m.Length
	err := os.WriteFile(filepath.Join(w.Dumps, name+".received"), s.Buffer[from:to], 0o644)
	text := "; dumped as " + name + ".received"
	if expected := v.expect(l, s, m, want); expected != nil && err == nil {
		err = os.WriteFile(filepath.Join(w.Dumps, name+".expected"), expected, 0o644)
		text += " and " + name + ".expected"
	}
	if err != nil {
		return fmt.Sprintf("; it could not be dumped: %v", err)
	}
	return text
}

// Completed checks a completed operation. It returns the first error that ends the job.
func (v *Verifier) Completed(l *queue.Queue, w *Report, s *backend.Slot) error {
	switch {
	case s.Kind != backend.OpRead:
		return nil
	case v.state == verifyReading:
		return v.check(w, l, s)
	case v.spec.Reads && v.spec.Limit != nil && !v.spec.DoneAs(s.Number+1, s.Stream, s.Offset):
		return nil
	case v.spec.Reads:
		return v.check(w, l, s)
	}
	return nil
}

// Verdict returns the result of verification when the load ended at end. The time of an interrupted verification counts
// too.
func (v *Verifier) Verdict(l *queue.Queue, w *Report, end int64) error {
	if !v.survey.over {
		v.conclude(w, l)
	}
	if v.state >= verifySyncing {
		w.took(v.spec, end-v.began)
	}
	return v.failure
}
