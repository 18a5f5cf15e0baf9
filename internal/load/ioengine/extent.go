package ioengine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/unit"
)

// stream works out where one clone goes on one device and how much it moves there.
//
// size is both the amount and the region; filesize makes the region its own; io_size makes the amount its own. The
// region starts at offset + clone·offset_increment. Of several devices each gets its part of size. What goes beyond
// the device is cut off, as fio does with block devices, and a warning says so.
func (p *program) stream(spec *jobSpec, clone int, devices []int, i int) (streamSpec, error) {
	j, device := &spec.job, devices[i]
	if spec.kind == backend.KindNames {
		return streamSpec{device: device, region: pattern.Region{Length: 1}, amount: int64(max(1, j.Loops)), pass: 1, real: 1}, nil
	}
	size := p.workload.Devices[device].SizeBytes
	block := spec.blockMin()
	align := block
	if j.OffsetAlign > 0 {
		align = j.OffsetAlign
	}
	start, err := startOf(j, size, align, clone)
	if err != nil {
		return streamSpec{}, err
	}
	length, amount := size-start, int64(0)
	if j.FileSize.Set {
		length = min(length, bytesOf(j.FileSize, size)-start)
	}
	if j.Size.Set {
		amount = bytesOf(j.Size, size)
		if j.Size.Percent == 0 {
			amount = j.Size.Bytes / int64(len(devices))
		}
		if len(devices) > 1 {
			amount = amount / block * block
		}
		if j.FileSizeMin > 0 {
			amount = p.levelAmount(devices, start, j.Size.Bytes, length)
		}
		if !j.FileSize.Set {
			if start+amount > size && clone == 0 {
				p.issues.Warnf(p.optionPos(j, "size"), "beyond-device", "job %q: %s from offset %s on goes beyond device %q of %s; "+
					"the job stays below its end", j.Name, unit.FormatBytes(amount), unit.FormatBytes(start),
					p.workload.Devices[device].Name, unit.FormatBytes(size))
			}
			length = min(length, amount)
		}
	}
	if !spec.random && j.ZoneSize == 0 && !j.IOSize.Set && amount > 0 {
		// Going over it in order again begins at its start, so the rest of a larger file is never touched.
		length = min(length, amount)
	}
	s := streamSpec{device: device, region: pattern.Region{Start: start, Length: length}, real: size - start}
	if amount == 0 || amount > length && !j.FileSize.Set {
		amount = length
	}
	zoned(&s.region, j)
	if largest := spec.blockMax(); s.region.Window() < largest {
		return s, fmt.Errorf("%s at offset %s do not hold one block of %s", unit.FormatBytes(max(0, s.region.Window())),
			unit.FormatBytes(start), unit.FormatBytes(largest))
	}
	amount -= amount % block
	s.pass = amount
	if j.IOSize.Set {
		amount = share(bytesOf(j.IOSize, size), block, len(devices), i)
	}
	if s.amount = amount * int64(max(1, j.Loops)); spec.endless {
		s.amount = 0
	}
	return s, nil
}

// levelAmount is what a device of that length gets of an amount in bytes, where devices have lengths of their own: as much as
// each of the others, and no more than it has. fio goes around its files in the same way until the amount is done.
func (p *program) levelAmount(devices []int, start, amount, length int64) int64 {
	lengths := make([]int64, len(devices))
	for k, d := range devices {
		lengths[k] = p.workload.Devices[d].SizeBytes - start
	}
	slices.Sort(lengths)
	for k, n := range lengths {
		level := amount / int64(len(lengths)-k)
		if n > level {
			return min(length, level)
		}
		amount -= n
	}
	return length
}

// share divides an amount among devices in whole blocks; what is left over goes to the first ones, a block each.
func share(amount, block int64, devices, i int) int64 {
	if devices <= 1 {
		return amount
	}
	part := amount / int64(devices) / block * block
	if left := (amount - part*int64(devices)) / block; int64(i) < left {
		part += block
	}
	return part
}

func startOf(j *fiojob.Job, size, block int64, clone int) (int64, error) {
	start := bytesOf(j.Offset, size)
	if j.Offset.Percent > 0 || j.OffsetIncrement.Percent > 0 {
		start = (start + block - 1) / block * block
	}
	increment := bytesOf(j.OffsetIncrement, size)
	if j.Offset.Percent > 0 || j.OffsetIncrement.Percent > 0 {
		increment = (increment + block - 1) / block * block
	}
	if increment > 0 && int64(clone) > (math.MaxInt64-start)/increment {
		return 0, fmt.Errorf("offset_increment %d is too large for clone %d", increment, clone)
	}
	start += int64(clone) * increment
	if start < 0 || start >= size {
		return 0, fmt.Errorf("offset %d is beyond its end at %d", start, size)
	}
	return start, nil
}

func bytesOf(s fiojob.Size, whole int64) int64 {
	if s.Percent > 0 {
		return int64(s.Percent / 100 * float64(whole))
	}
	return s.Bytes
}

// zoned cuts the region into strided windows. zonesize without zonemode is read as strided, which is what its authors
// meant; fio itself refuses it since version 3.9.
func zoned(r *pattern.Region, j *fiojob.Job) {
	if j.ZoneSize <= 0 {
		return
	}
	r.ZoneBytes = j.ZoneSize
	r.ZoneRange = j.ZoneRange
	if r.ZoneRange <= 0 {
		r.ZoneRange = j.ZoneSize
	}
	r.ZoneStride = r.ZoneRange + bytesOf(j.ZoneSkip, r.Length)
	r.Zones = 1
	if r.Length > r.ZoneRange {
		r.Zones += (r.Length - r.ZoneRange) / r.ZoneStride
	}
}

// blockMin and blockMax are over both directions.
func (s *jobSpec) blockMin() int64 {
	smallest := s.sequel.Smallest
	for d := range s.sizes {
		if v := s.sizes[d].Smallest; v > 0 && (smallest == 0 || v < smallest) {
			smallest = v
		}
	}
	return max(1, smallest)
}

func (s *jobSpec) blockMax() int64 {
	return max(1, s.sizes[interval.Read].Largest, s.sizes[interval.Write].Largest, s.sizes[interval.Trim].Largest, s.sequel.Largest)
}

// zonesShownMax bounds how many windows of a region are listed one by one.
const zonesShownMax = 1024

// extents returns what all streams may touch, merged and sorted by device.
func (p *program) extents() []load.Extent {
	var all []load.Extent
	for i := range p.jobs {
		spec := &p.jobs[i]
		for _, c := range spec.clones {
			for _, s := range c.streams {
				if s.region.Zones > zonesShownMax {
					all = append(all, load.Extent{
						Device: p.workload.Devices[s.device].Name, Offset: s.region.Start,
						Length: s.region.End() - s.region.Start, Writes: spec.changes(),
					})
					continue
				}
				for z := range max(1, s.region.Zones) {
					all = append(all, load.Extent{
						Device: p.workload.Devices[s.device].Name, Offset: s.region.Start + z*s.region.ZoneStride,
						Length: s.region.Window(), Writes: spec.changes(),
					})
				}
			}
		}
	}
	return mergeExtents(all)
}

// mergeExtents joins what touches or overlaps, writes and reads apart.
func mergeExtents(all []load.Extent) []load.Extent {
	slices.SortFunc(all, func(a, b load.Extent) int {
		if a.Writes != b.Writes {
			if a.Writes {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Length, b.Length))
	})
	merged := []load.Extent{}
	for _, e := range all {
		if n := len(merged) - 1; n >= 0 {
			last := &merged[n]
			if last.Device == e.Device && last.Writes == e.Writes && e.Offset <= last.Offset+last.Length {
				last.Length = max(last.Length, e.Offset+e.Length-last.Offset)
				continue
			}
		}
		merged = append(merged, e)
	}
	slices.SortStableFunc(merged, func(a, b load.Extent) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset))
	})
	return merged
}

// bytesWritten bounds what the jobs write: -1 where only time limits it.
func (p *program) bytesWritten() int64 {
	var sum int64
	for i := range p.jobs {
		spec := &p.jobs[i]
		if !spec.writes || spec.verifiesOnly() {
			continue
		}
		for _, c := range spec.clones {
			var amount int64
			for _, s := range c.streams {
				amount += s.amount
			}
			if c.count > 0 && (spec.endless || amount > c.count*spec.blockMax()) {
				amount = c.count * spec.blockMax()
			} else if spec.endless {
				return -1
			}
			sum += amount
		}
	}
	return sum
}
