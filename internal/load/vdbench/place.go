package vdbench

import (
	"strings"

	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/unit"
)

// place is the part of a device that a stream uses.
type place struct {
	start, length int64
	notFirst      bool // random places of several sizes: not the first block of the device
}

// unitMax is the largest common multiple of transfer sizes that ranges are rounded to.
const unitMax = 16 * unit.MiB

// place works out size and range, and keeps vdbench's rule that the first block of a device is never used. It returns the size of the
// storage.
func (b *builder) place(s *stream, wd, sd *parmfile.Definition) int64 {
	device := b.deviceBytes(s, sd)
	length := device
	if n, has := sd.Size("size"); has {
		if length = n; device > 0 && n > device {
			b.no(sd.Word("size"), "size=%s is more than the %s of %s", sd.Text("size", ""), unit.FormatBytes(device), s.device)
		}
	}
	s.align, _ = sd.Size("align")
	if s.align%512 != 0 {
		b.no(sd.Word("align"), "align=%d is not a multiple of 512", s.align)
	}
	step, largest := int64(1), int64(0)
	for _, share := range s.sizes {
		step, largest = step/pattern.GCD(step, share.Bytes)*share.Bytes, max(largest, share.Bytes)
		if step > unitMax {
			b.no(wd.Word("xfersize"), "these transfer sizes have no common multiple up to %s, and random places are multiples of each", unit.FormatBytes(unitMax))
			return length
		}
	}
	if s.random > 0 && s.align > 0 {
		step = s.align
	}
	if len(s.sizes) > 1 && s.random > 0 && s.random < 100 {
		b.no(wd.Word("seekpct"), "several transfer sizes with seekpct=%d: where a sequence continues is not documented", s.random)
	}
	first, last := int64(0), length
	for _, d := range []*parmfile.Definition{sd, wd} {
		if p, has := d.Get("range"); has {
			first, last = b.ranged(p, length)
		}
	}
	s.place.start = (first + step - 1) / step * step
	skipFirst(s, step, largest)
	if s.place.length = last - s.place.start; length > 0 && s.place.length < 2*largest {
		b.no(sd.Name, "sd=%s leaves %s for blocks of %s", sd.Name.Text, unit.FormatBytes(max(0, s.place.length)), unit.FormatBytes(largest))
	}
	if s.random == 0 && s.align > 0 {
		s.align = 0 // for random places only
	}
	if s.align > 0 && s.random < 100 {
		b.no(sd.Word("align"), "align with seekpct=%d: where a sequence continues is not documented", s.random)
	}
	return length
}

// skipFirst leaves out the first block of a device.
func skipFirst(s *stream, step, largest int64) {
	if s.place.start > 0 || !strings.HasPrefix(s.device, "/dev/") {
		return
	}
	switch {
	case len(s.sizes) == 1 || s.align > 0:
		s.place.start = max(step, s.sizes[0].Bytes)
		if s.random > 0 && s.align > 0 {
			s.place.start = step
		}
	case s.random == 0:
		s.place.start = largest
	case s.random == 100:
		s.place.notFirst = true
	}
}

// percentMax is the largest value of a range that is a percentage.
const percentMax = 200

// ranged reads range=(from,to) in percent or bytes.
func (b *builder) ranged(p parmfile.Parameter, length int64) (first, last int64) {
	from, _ := parmfile.ParseSize(p.Values[0].Text)
	to, _ := parmfile.ParseSize(p.Values[1].Text)
	if to <= percentMax {
		if to > 100 {
			b.no(p.Key, "range=(%d,%d) goes round the end of the storage", from, to)
		}
		from, to = int64(float64(length)*float64(from)/100), int64(float64(length)*float64(to)/100)
	}
	if from >= to || to > length {
		b.no(p.Key, "range=(%s,%s) is not within the storage of %s", p.Values[0].Text, p.Values[1].Text, unit.FormatBytes(length))
	}
	return from, to
}

// deviceBytes finds the device of the VM that a lun names.
func (b *builder) deviceBytes(s *stream, sd *parmfile.Definition) int64 {
	if b.anyDisk {
		return checkedBytes
	}
	var names []string
	for _, d := range b.workload.Devices {
		if d.Name == s.device {
			return d.SizeBytes
		}
		names = append(names, d.Name)
	}
	b.no(sd.Word("lun"), "lun=%s is not a disk of the VM, which has %s", s.device, strings.Join(names, ", "))
	return 0
}
