package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/unit"
)

// stream works out where one clone goes on one device and how much it moves there.
//
// size is both the amount and the region; filesize makes the region its own; io_size makes the amount its own. The
// region starts at offset + clone·offset_increment. Of several devices each gets its part of size. What goes beyond
// the device is cut off, as fio does with block devices, and a warning says so.
func (p *Program) stream(spec *Job, clone int, devices []int, i int) (streamSpec, error) {
	j, device := &spec.Fio, devices[i]
	if spec.Kind == backend.KindNames {
		return streamSpec{Device: device, Region: pattern.Region{Length: 1}, Amount: int64(max(1, j.Loops)), pass: 1, real: 1}, nil
	}
	size := p.Workload.Devices[device].SizeBytes
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
				p.Issues.Warnf(p.optionPos(j, "size"), "beyond-device", "job %q: %s from offset %s on goes beyond device %q of %s; "+
					"the job stays below its end", j.Name, unit.FormatBytes(amount), unit.FormatBytes(start),
					p.Workload.Devices[device].Name, unit.FormatBytes(size))
			}
			length = min(length, amount)
		}
	}
	if !spec.Random && j.ZoneSize == 0 && !j.IOSize.Set && amount > 0 {
		// Going over it in order again begins at its start, so the rest of a larger file is never touched.
		length = min(length, amount)
	}
	s := streamSpec{Device: device, Region: pattern.Region{Start: start, Length: length}, real: size - start}
	if amount == 0 || amount > length && !j.FileSize.Set {
		amount = length
	}
	zoned(&s.Region, j)
	if largest := spec.BlockMax(); s.Region.Window() < largest {
		return s, fmt.Errorf("%s at offset %s do not hold one block of %s", unit.FormatBytes(max(0, s.Region.Window())),
			unit.FormatBytes(start), unit.FormatBytes(largest))
	}
	amount -= amount % block
	s.pass = amount
	if j.IOSize.Set {
		amount = share(bytesOf(j.IOSize, size), block, len(devices), i)
	}
	if s.Amount = amount * int64(max(1, j.Loops)); spec.endless {
		s.Amount = 0
	}
	return s, nil
}

// levelAmount is what a device of that length gets of an amount in bytes, where devices have lengths of their own: as much as
// each of the others, and no more than it has. fio goes around its files in the same way until the amount is done.
func (p *Program) levelAmount(devices []int, start, amount, length int64) int64 {
	lengths := make([]int64, len(devices))
	for k, d := range devices {
		lengths[k] = p.Workload.Devices[d].SizeBytes - start
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
func (s *Job) blockMin() int64 {
	smallest := s.Sequel.Smallest
	for d := range s.Sizes {
		if v := s.Sizes[d].Smallest; v > 0 && (smallest == 0 || v < smallest) {
			smallest = v
		}
	}
	return max(1, smallest)
}

func (s *Job) BlockMax() int64 {
	return max(1, s.Sizes[interval.Read].Largest, s.Sizes[interval.Write].Largest, s.Sizes[interval.Trim].Largest, s.Sequel.Largest)
}

// zonesShownMax bounds how many windows of a region are listed one by one.
const zonesShownMax = 1024

// Extents returns what all streams may touch, merged and sorted by device.
func (p *Program) Extents() []extent.Extent {
	var all []extent.Extent
	for i := range p.Jobs {
		spec := &p.Jobs[i]
		for _, c := range spec.Clones {
			for _, s := range c.Streams {
				if s.Region.Zones > zonesShownMax {
					all = append(all, extent.Extent{
						Device: p.Workload.Devices[s.Device].Name, Offset: s.Region.Start,
						Length: s.Region.End() - s.Region.Start, Writes: spec.changes(),
					})
					continue
				}
				for z := range max(1, s.Region.Zones) {
					all = append(all, extent.Extent{
						Device: p.Workload.Devices[s.Device].Name, Offset: s.Region.Start + z*s.Region.ZoneStride,
						Length: s.Region.Window(), Writes: spec.changes(),
					})
				}
			}
		}
	}
	return extent.Merge(all)
}

// BytesWritten bounds what the jobs write: -1 where only time limits it.
func (p *Program) BytesWritten() int64 {
	var sum int64
	for i := range p.Jobs {
		spec := &p.Jobs[i]
		if !spec.Writes || spec.VerifiesOnly() {
			continue
		}
		for _, c := range spec.Clones {
			var amount int64
			for _, s := range c.Streams {
				amount += s.Amount
			}
			if c.Count > 0 && (spec.endless || amount > c.Count*spec.BlockMax()) {
				amount = c.Count * spec.BlockMax()
			} else if spec.endless {
				return -1
			}
			sum += amount
		}
	}
	return sum
}
