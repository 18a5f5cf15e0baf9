package iolog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/braggdev/bragg/internal/diag"
)

// trace reads binary traces of the kernel's block layer, as blkparse -d writes them: events of 48 bytes, each followed by
// a payload, in the byte order of the machine that recorded them (struct blk_io_trace of linux/blktrace_api.h).
//
//	 0  magic 0x65617400 and version 7     20  sector of 512 bytes      40  processor
//	 4  sequence                           24  (sector, high half)      44  error, 16 bits
//	 8  nanoseconds                        24  bytes                    46  length of the payload, 16 bits
//	16  sector, 64 bits                    28  action; 32 process; 36 device
//
// A request is taken when it is queued, as fio does: that is when the load wanted it.
type trace struct {
	order   binary.ByteOrder
	at      int64 // bytes read
	event   [eventBytes]byte
	queued  bool // the write behind a flush is still to be told
	pending Action
	devices map[uint32]int32
}

const (
	eventBytes   = 48
	traceMagic   = 0x65617400
	traceVersion = 7

	actionQueue = 1
	actionIssue = 7

	categoryWrite       = 1 << 1
	categoryFlush       = 1 << 2
	categoryPassthrough = 1 << 9
	categoryNotify      = 1 << 10
	categoryDiscard     = 1 << 13

	sectorBytes = 512
)

// traceOrder returns the byte order of a trace by its first bytes, nil where they are none.
func traceOrder(start []byte) binary.ByteOrder {
	if len(start) < 4 {
		return nil
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(start)&^0xff == traceMagic {
			return order
		}
	}
	return nil
}

func newTrace(order binary.ByteOrder) *trace {
	return &trace{order: order, devices: map[uint32]int32{}}
}

func (t *trace) version() string { return "trace of blktrace" }

var errOnlyIssued = errors.New("the trace has no events of queued requests")

func (t *trace) next(r *Reader, a *Action) error {
	if t.queued {
		t.queued, *a = false, t.pending
		return nil
	}
	for {
		taken, err := t.one(r, a)
		if err != nil || taken {
			return err
		}
	}
}

// one reads one event; taken says that it is an action.
func (t *trace) one(r *Reader, a *Action) (taken bool, err error) {
	n, err := io.ReadFull(r.in, t.event[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		r.counts.cut, err = n, io.EOF // as when blktrace was killed
	}
	if err != nil {
		return false, err
	}
	e, o := t.event[:], t.order
	start := t.at
	t.at += eventBytes
	if magic := o.Uint32(e); magic&^0xff != traceMagic || magic&0xff != traceVersion {
		return false, t.badMagic(r, start, magic)
	}
	if payload := int(o.Uint16(e[46:])); payload > 0 {
		skipped, err := r.in.Discard(payload)
		if errors.Is(err, io.EOF) {
			r.counts.cut, err = skipped+eventBytes, io.EOF
		}
		if err != nil {
			return false, err
		}
		t.at += int64(payload)
	}
	return t.take(r, a, start)
}

// take makes an action of an event, if it is one.
func (t *trace) take(r *Reader, a *Action, start int64) (bool, error) {
	e, o := t.event[:], t.order
	action := o.Uint32(e[28:])
	category := action >> 16
	switch {
	case category&categoryNotify != 0:
		return false, nil
	case action&0xffff == actionQueue:
		r.counts.queued++
	case action&0xffff == actionIssue:
		r.counts.issued++
	}
	if action&0xffff != t.wanted(r) {
		return false, nil
	}
	if category&categoryPassthrough != 0 {
		r.counts.passthrough++ // a command of another kind, whose sector means nothing
		return false, nil
	}
	nanos, sector, size := o.Uint64(e[8:]), o.Uint64(e[16:]), int64(o.Uint32(e[24:]))
	if nanos > uint64(nanosMax) || sector > uint64(offsetMax)/sectorBytes || size > sizeMax && category&categoryDiscard == 0 {
		return false, t.fault(r, start, "trace-event", "a time, sector or length is not possible", "")
	}
	*a = Action{Nanos: int64(nanos), Offset: int64(sector) * sectorBytes, Size: size, Kind: Read}
	file, err := t.device(r, o.Uint32(e[36:]))
	if err != nil {
		return false, t.fault(r, start, "trace-event", "the trace has "+err.Error(), "")
	}
	a.File = file
	switch {
	case category&categoryDiscard != 0:
		a.Kind = Trim
	case category&categoryFlush != 0:
		// A flush alone, or in front of a write.
		if t.pending, t.queued = *a, size > 0; t.queued {
			t.pending.Kind = Write
		}
		a.Kind = Sync
	case category&categoryWrite != 0:
		a.Kind = Write
	}
	return true, nil
}

func (t *trace) wanted(r *Reader) uint32 {
	if r.options.issued {
		return actionIssue
	}
	return actionQueue
}

func (t *trace) device(r *Reader, number uint32) (int32, error) {
	if i, ok := t.devices[number]; ok {
		return i, nil
	}
	i, err := r.add(DeviceName(number))
	if err == nil {
		t.devices[number] = i
	}
	return i, err
}

// DeviceName is how a trace's device is named in Summary.Files: "major:minor".
func DeviceName(number uint32) string { return fmt.Sprintf("%d:%d", number>>20, number&(1<<20-1)) }

func (t *trace) badMagic(r *Reader, start int64, magic uint32) error {
	message, hint := fmt.Sprintf("here begins no event: 0x%08x instead of 0x%08x", magic, traceMagic|traceVersion), ""
	if magic&^0xff == traceMagic {
		message = fmt.Sprintf("the event has version %d, only %d is known", magic&0xff, traceVersion)
	} else {
		hint = "make it again: blkparse -i NAME -d FILE"
	}
	return t.fault(r, start, "trace-event", message, hint)
}

// fault is about the event that begins at a byte; nothing behind it can be understood.
func (t *trace) fault(r *Reader, start int64, code, message, hint string) error {
	return &fault{final: true, Diagnostic: diag.Diagnostic{
		Code: code, Severity: diag.SeverityError, Pos: diag.Position{File: r.name},
		Message: fmt.Sprintf("byte %d: %s", start, message), Hint: hint,
	}}
}
