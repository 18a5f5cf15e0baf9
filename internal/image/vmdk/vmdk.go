// Package vmdk writes virtual disks in VMware's stream-optimized format, which vCenter imports.
//
//	header ▸ descriptor ▸ (grain … grain ▸ table) … ▸ directory ▸ footer ▸ end
//
// A grain is 64 KiB of the disk, compressed; grains of zeros are left out. 512 grains share a table, and the directory lists
// the tables. All of that follows the data, so that a disk is written in one pass. The format is in VMware's "Virtual Disk
// Format 5.0". The same disk gives the same bytes: the identity of its content, which other programs draw by chance, is fixed.
package vmdk

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

// SectorBytes is the unit of the format. The size of a disk is a multiple of it.
const SectorBytes = 512

const (
	grainSectors = 128
	grainBytes   = grainSectors * SectorBytes
	tableGrains  = 512
	tableSectors = tableGrains * 4 / SectorBytes

	headerSectors     = 128 // where the first grain begins
	descriptorSectors = 20
	// diskBytesMax keeps sector numbers in the file within the 32 bits that tables have for them.
	diskBytesMax = 1 << 40

	magic   = 0x564d444b // "KDMV"
	version = 3
	// flags: the newline test below is valid, grains are compressed, and markers lie between them.
	flags       = 1 | 1<<16 | 1<<17
	deflate     = 1
	atEnd       = ^uint64(0) // the footer says where the directory is
	contentID   = 0xfffffffe
	cylinderMax = 65535
)

// Markers before what is not a grain.
const (
	markEnd = iota
	markTable
	markDirectory
	markFooter
)

// header is the first sector, and the footer.
type header struct {
	Magic, Version, Flags                         uint32
	Capacity, GrainSize                           uint64
	DescriptorOffset, DescriptorSize              uint64
	GrainsPerTable                                uint32
	RedundantDirectory, Directory, Overhead       uint64
	Unclean                                       uint8
	SingleEnd, NonEnd, DoubleEndFirst, DoubleEnd2 byte
	Compression                                   uint16
	_                                             [433]byte
}

// marker precedes metadata. Of a grain's, the kind is the first four bytes of its data.
type marker struct {
	Sectors uint64
	Size    uint32
	Kind    uint32
	_       [496]byte
}

// Write writes a disk of that size, which it reads to its end.
func Write(to io.Writer, disk io.Reader, sizeBytes int64) error {
	if sizeBytes <= 0 || sizeBytes%SectorBytes != 0 || sizeBytes > diskBytesMax {
		return fmt.Errorf("write a virtual disk: %d bytes are not 1 to %d sectors of %d", sizeBytes, int64(diskBytesMax/SectorBytes), SectorBytes)
	}
	w := &writer{to: bufio.NewWriterSize(to, 1<<20), capacity: uint64(sizeBytes) / SectorBytes, table: make([]uint32, tableGrains)}
	w.deflate = zlib.NewWriter(&w.packed)
	w.put(w.header(atEnd))
	w.put(descriptor(w.capacity))
	w.pad(headerSectors)
	if err := w.grains(disk, sizeBytes); err != nil {
		return err
	}
	w.put(marker{Sectors: sectorsOf(4 * len(w.directory)), Kind: markDirectory})
	directory := w.sectors()
	w.put(w.directory)
	w.pad(0)
	w.put(marker{Sectors: 1, Kind: markFooter})
	w.put(w.header(directory))
	w.put(marker{Kind: markEnd})
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

// writer keeps the first error; what follows it does nothing.
type writer struct {
	to        *bufio.Writer
	written   uint64 // bytes
	err       error
	capacity  uint64 // sectors
	table     []uint32
	directory []uint32
	packed    bytes.Buffer
	deflate   *zlib.Writer
}

// grains writes the data with the tables.
func (w *writer) grains(disk io.Reader, sizeBytes int64) error {
	grain := make([]byte, grainBytes)
	count := (sizeBytes + grainBytes - 1) / grainBytes
	for i := range count {
		part := grain[:min(grainBytes, sizeBytes-i*grainBytes)]
		if _, err := io.ReadFull(disk, part); err != nil {
			return fmt.Errorf("read the disk at %d bytes of %d: %w", i*grainBytes, sizeBytes, err)
		}
		clear(grain[len(part):])
		if !zero(grain) {
			w.table[i%tableGrains] = uint32(w.sectors())
			w.grain(uint64(i)*grainSectors, grain)
		}
		if i%tableGrains == tableGrains-1 || i == count-1 {
			w.endTable()
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

var zeros [grainBytes]byte

func zero(grain []byte) bool { return bytes.Equal(grain, zeros[:]) }

func (w *writer) grain(sector uint64, grain []byte) {
	w.packed.Reset()
	w.deflate.Reset(&w.packed)
	_, err := w.deflate.Write(grain)
	if err == nil {
		err = w.deflate.Close()
	}
	if w.err == nil {
		w.err = err
	}
	w.put(struct {
		Sector uint64
		Size   uint32
	}{sector, uint32(w.packed.Len())})
	w.put(w.packed.Bytes())
	w.pad(0)
}

// endTable writes the table of the grains before it. One without data is left out.
func (w *writer) endTable() {
	at := uint64(0)
	for _, sector := range w.table {
		if sector != 0 {
			w.put(marker{Sectors: tableSectors, Kind: markTable})
			at = w.sectors()
			w.put(w.table)
			break
		}
	}
	clear(w.table)
	w.directory = append(w.directory, uint32(at))
}

func (w *writer) header(directory uint64) header {
	return header{
		Magic: magic, Version: version, Flags: flags, Capacity: w.capacity, GrainSize: grainSectors,
		DescriptorOffset: 1, DescriptorSize: descriptorSectors, GrainsPerTable: tableGrains, Directory: directory, Overhead: headerSectors,
		SingleEnd: '\n', NonEnd: ' ', DoubleEndFirst: '\r', DoubleEnd2: '\n', Compression: deflate,
	}
}

// descriptor is the text that describes the disk. Its geometry is that of a SCSI disk.
func descriptor(capacity uint64) []byte {
	const heads, sectors = 255, 63
	cylinders := min(max(1, capacity/(heads*sectors)), cylinderMax)
	return fmt.Appendf(nil, `# Disk DescriptorFile
version=1
CID=%08x
parentCID=ffffffff
createType="streamOptimized"

# Extent description
RDONLY %d SPARSE "disk.vmdk"

# The Disk Data Base
#DDB

ddb.virtualHWVersion = "13"
ddb.geometry.cylinders = "%d"
ddb.geometry.heads = "%d"
ddb.geometry.sectors = "%d"
ddb.adapterType = "lsilogic"
`, contentID, capacity, cylinders, heads, sectors)
}

func (w *writer) put(what any) {
	if w.err != nil {
		return
	}
	if text, ok := what.([]byte); ok {
		_, w.err = w.to.Write(text)
		w.written += uint64(len(text))
		return
	}
	w.err = binary.Write(w.to, binary.LittleEndian, what)
	w.written += uint64(binary.Size(what))
}

// pad fills the sector, and all before the given one.
func (w *writer) pad(until uint64) {
	for w.err == nil && (w.written%SectorBytes != 0 || w.sectors() < until) {
		w.put(zeros[:SectorBytes-w.written%SectorBytes])
	}
}

func (w *writer) sectors() uint64 { return w.written / SectorBytes }

func sectorsOf(bytes int) uint64 { return uint64(bytes+SectorBytes-1) / SectorBytes }
