package ioengine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
)

// verified looks at a completed operation of a lane that verifies. The error is the first one that its job does not
// outlive.
func (w *worker) verified(l *lane, s *backend.Slot) error {
	v := l.verify
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

// check compares what an operation read with what should be there, interval by interval.
func (v *verifier) check(w *worker, l *lane, s *backend.Slot) error {
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
		w.mismatched()
	} else if absent {
		v.survey.absent++
	}
	settled := v.survey.own && v.settlePostponed(w, l)
	if (wrong || settled) && v.spec.Fatal && !v.spec.Tolerant {
		return v.failure
	}
	return nil
}

// mismatched counts an operation that read wrong data.
func (w *worker) mismatched() {
	w.record.fail(uint8(interval.Read), ErrnoMismatch)
	if w.account.FirstError == 0 {
		w.account.FirstError = ErrnoMismatch
	}
}

// compare looks at every byte, where the digest does not depend on all of them.
func (v *verifier) compare(l *lane, s *backend.Slot, at int64, part []byte) *verify.Mismatch {
	expected := v.regenerate(l, s)[at : at+int64(len(part))]
	if bytes.Equal(expected, part) {
		return nil
	}
	first := 0
	for expected[first] == part[first] {
		first++
	}
	return &verify.Mismatch{
		Offset: s.Offset + at, Length: int64(len(part)), Place: verify.Place{Block: s.Offset, Position: at},
		Header: verify.ReadHeader(part, v.spec.Format.HeaderOffset),
		Fault:  fmt.Sprintf("byte %d is %02x, and %02x was written", s.Offset+at+int64(first), part[first], expected[first]),
	}
}

// regenerate makes what the write of an operation held.
func (v *verifier) regenerate(l *lane, s *backend.Slot) []byte {
	if v.expected == nil {
		v.expected = make([]byte, l.job.BufferBytes())
	}
	block := v.expected[:s.Size]
	stream := &l.Streams[s.Stream]
	l.job.Content.Write(block, content.Pool(), stream.ContentKey, s.Number)
	v.codec.Stamp(block, s.Offset, v.stampOf(stream, s.Number))
	return block
}

// mismatchesMax bounds the lines about wrong data that are kept of one worker, and dumpsMax the blocks that a lane dumps.
const (
	mismatchesMax = 32
	dumpsMax      = 1000
)

// report keeps what is to be said about a wrong interval.
func (v *verifier) report(w *worker, l *lane, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) {
	text := v.describe(w.shared.devices[s.Device].Name, m, want)
	if v.survey.doubt != "" {
		text += "; " + v.survey.doubt
	}
	if v.spec.Dump && w.shared.dumps != "" && s.Buffer != nil {
		text += v.dump(w, l, s, m, want)
	}
	if v.failure == nil && !v.spec.Tolerant {
		v.failure = verificationError(text)
	}
	w.account.MismatchCount++
	if len(w.account.Mismatches) < mismatchesMax {
		w.account.Mismatches = append(w.account.Mismatches, text)
	}
}

// dump writes what was read, and what should have been there as far as that is known, into files named as fio does. It
// returns what to say about it.
func (v *verifier) dump(w *worker, l *lane, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) string {
	if v.dumps++; v.dumps > dumpsMax {
		return ""
	}
	name := fmt.Sprintf("%s.%d", filepath.Base(w.shared.devices[s.Device].Name), m.Offset)
	from, to := m.Place.Position, m.Place.Position+m.Length
	err := os.WriteFile(filepath.Join(w.shared.dumps, name+".received"), s.Buffer[from:to], 0o644)
	text := "; dumped as " + name + ".received"
	if expected := v.expect(l, s, m, want); expected != nil && err == nil {
		err = os.WriteFile(filepath.Join(w.shared.dumps, name+".expected"), expected, 0o644)
		text += " and " + name + ".expected"
	}
	if err != nil {
		return fmt.Sprintf("; it could not be dumped: %v", err)
	}
	return text
}

// expect returns what an interval should hold, nil when that cannot be known: another tool wrote it.
func (v *verifier) expect(l *lane, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) []byte {
	from, to := m.Place.Position, m.Place.Position+m.Length
	switch f := &v.spec.Format; {
	case want != nil && (!v.spec.Only || m.Header.Seed == want.Seed):
		return v.regenerate(l, s)[from:to]
	case f.Method == verify.ByPattern:
		block := make([]byte, s.Size)
		f.Pattern.Fill(block, s.Offset)
		return block[from:to]
	case f.HeaderBytes() > 0 && len(f.Pattern.Bytes) == 0:
		return v.reconstruct(l, m)
	}
	return nil
}

// positionsTried is how many intervals of one write may stand before the one that is reconstructed.
const positionsTried = 64

// reconstruct makes an interval again from its header alone: the seed says what the write held, unless its job shaped its
// data, and the digest tells which of the write's intervals it was. It returns nil where none fits, as with what fio wrote.
func (v *verifier) reconstruct(l *lane, m *verify.Mismatch) []byte {
	h := &m.Header
	block := make([]byte, 0, positionsTried*m.Length)
	for n := int64(1); n <= positionsTried && n*m.Length <= l.job.BufferBytes()*positionsTried && m.Offset >= (n-1)*m.Length; n++ {
		block = block[:n*m.Length]
		content.Fill(block, h.Seed)
		v.codec.Stamp(block, m.Offset-(n-1)*m.Length, verify.Stamp{Seed: h.Seed, Number: h.FullNumber(), Thread: h.Thread})
		if interval := block[(n-1)*m.Length:]; v.codec.SameDigest(interval, m.Digest) {
			return interval
		}
	}
	return nil
}

// took notes how long was read back until now, apart from the time of a job that only reads.
func (v *verifier) took(w *worker, now int64) {
	if v.spec.Reads {
		w.account.SurveyNanos += max(0, now-v.began)
		return
	}
	w.account.VerifyNanos += max(0, now-v.began)
}

// verdict is what verification came to in the end. The time of one that was cut off counts too.
func (w *worker) verdict() error {
	var errs []error
	for i := range w.lanes {
		if v := w.lanes[i].verify; v != nil {
			if !v.survey.over {
				v.conclude(w, &w.lanes[i])
			}
			errs = append(errs, v.failure)
			if v.state >= verifySyncing {
				v.took(w, w.account.EndNanos)
			}
		}
	}
	return errors.Join(errs...)
}

// DumpTo lets verify_dump write its files into a folder; without it none are written. It must be called before Run.
func (r Run) DumpTo(folder string) { r.shared.dumps = folder }
