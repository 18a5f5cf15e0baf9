package fioreport

// Disk is the change of a block device's counters during a run. Sectors have 512 bytes.
type Disk struct {
	Name                                           string
	Reads, ReadMerges, ReadSectors, ReadMillis     uint64
	Writes, WriteMerges, WriteSectors, WriteMillis uint64
	QueueMillis                                    uint64
	Utilization                                    float64 // percent of the time in which it was busy

	Busy uint64 // milliseconds
}

func (d *Disk) Minus(o *Disk) Disk {
	return Disk{
		Name: d.Name, Reads: d.Reads - o.Reads, ReadMerges: d.ReadMerges - o.ReadMerges, ReadSectors: d.ReadSectors - o.ReadSectors,
		ReadMillis: d.ReadMillis - o.ReadMillis, Writes: d.Writes - o.Writes, WriteMerges: d.WriteMerges - o.WriteMerges,
		WriteSectors: d.WriteSectors - o.WriteSectors, WriteMillis: d.WriteMillis - o.WriteMillis,
		QueueMillis: d.QueueMillis - o.QueueMillis, Busy: d.Busy - o.Busy,
	}
}
