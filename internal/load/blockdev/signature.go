package blockdev

import (
	"bytes"
	"encoding/binary"
	"io"
)

// probe looks for one kind of structure in one place, which may depend on the size of the device.
//
// Places and magic numbers are from the formats' own descriptions; each test also checks the fields beside a short magic,
// because examined devices are often full of random bytes.
type probe struct {
	name   string
	place  func(size int64) int64
	length int
	test   func(b []byte, size int64) bool
}

// at is a place that does not depend on the size.
func at(offset int64) func(int64) int64 { return func(int64) int64 { return offset } }

// fromEnd is a place counted from the end.
func fromEnd(offset int64) func(int64) int64 { return func(size int64) int64 { return size - offset } }

// magic tests for text at the start of the buffer.
func magic(text string) func([]byte, int64) bool {
	return func(b []byte, _ int64) bool { return bytes.HasPrefix(b, []byte(text)) }
}

var (
	little = binary.LittleEndian
	big    = binary.BigEndian
)

// probes lists all known structures.
func probes() []probe {
	list := []probe{
		{"ext", at(1024), 1024, isExt},
		{"xfs", at(0), 512, isXFS},
		{"btrfs", at(65536 + 64), 8, magic("_BHRfS_M")},
		{"ntfs", at(3), 8, magic("NTFS    ")},
		{"exfat", at(3), 8, magic("EXFAT   ")},
		{"fat", at(0), 512, isFAT},
		{"f2fs", at(1024), 4, magic("\x10\x20\xf5\xf2")},
		{"squashfs", at(0), 96, isSquashfs},
		{"erofs", at(1024), 128, isErofs},
		{"iso9660", at(32769), 5, magic("CD001")},
		{"udf", at(32769), 5, magic("BEA01")},
		{"luks", at(0), 8, isLUKS},
		{"bcache", at(4096 + 24), 16, magic("\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")},
		{"bluestore", at(0), 22, magic("bluestore block device")},
		{"vmfs", at(1 << 20), 4, magic("\x0d\xd0\x01\xc0")},
		{"md", at(0), 256, isMD1},
		{"md", at(4096), 256, isMD1},
		{"md", func(size int64) int64 { return size&^4095 - 8192 }, 256, isMD1},
		{"md", func(size int64) int64 { return size&^65535 - 65536 }, 32, isMD0},
		{"dos", at(0), 512, isMBR},
		{"gpt", at(512), 92, isGPT},
		{"gpt", at(4096), 92, isGPT},
		{"gpt", fromEnd(512), 92, isGPT},
		{"gpt", fromEnd(4096), 92, isGPT},
	}
	// An LVM label may be in any of the first four sectors.
	for sector := range int64(4) {
		list = append(list, probe{"lvm", at(sector * 512), 32, isLVM})
	}
	// The second header of LUKS2 is at the end of the first one, whose size is a power of two.
	for offset := int64(0x4000); offset <= 0x400000; offset *= 2 {
		list = append(list, probe{"luks", at(offset), 8, magic("SKUL\xba\xbe\x00\x02")})
	}
	// Swap has its magic at the end of the first page, with the page size of the machine that made it.
	for page := int64(4096); page <= 65536; page *= 2 {
		list = append(list, probe{"swap", at(page - 10), 10, isSwap})
	}
	// ZFS keeps four labels, each with a ring of uberblocks in its second half.
	for _, label := range []func(int64) int64{
		at(0), at(256 << 10),
		func(size int64) int64 { return size&^(256<<10-1) - 512<<10 },
		func(size int64) int64 { return size&^(256<<10-1) - 256<<10 },
	} {
		ring := func(size int64) int64 { return label(size) + 128<<10 }
		list = append(list, probe{"zfs", ring, 128 << 10, isZFS})
	}
	return list
}

// signatures looks for all known structures on a device or partition. Names are in the order of the list, each place at
// most once.
func signatures(r io.ReaderAt, size int64) ([]Signature, error) {
	var found []Signature
	seen := map[Signature]bool{}
	for _, p := range probes() {
		offset := p.place(size)
		if offset < 0 || offset+int64(p.length) > size {
			continue
		}
		b := make([]byte, p.length)
		if err := readFull(r, b, offset); err != nil {
			return found, err
		}
		if !p.test(b, size) {
			continue
		}
		name := p.name
		if name == "ext" {
			name = extVersion(b)
		}
		sig := Signature{Name: name, Offset: offset}
		if !seen[sig] {
			found = append(found, sig)
		}
		seen[sig] = true
	}
	return found, nil
}

// isSwap detects the two headers and an image of a suspended machine.
func isSwap(b []byte, _ int64) bool {
	for _, m := range []string{"SWAPSPACE2", "SWAP-SPACE", "S1SUSPEND\x00", "S2SUSPEND\x00", "ULSUSPEND\x00", "LINHIB0001"} {
		if string(b) == m {
			return true
		}
	}
	return false
}

func isLVM(b []byte, _ int64) bool {
	return string(b[:8]) == "LABELONE" && string(b[24:32]) == "LVM2 001"
}

// isLUKS detects versions 1 and 2: the magic, then the version, big-endian.
func isLUKS(b []byte, _ int64) bool {
	version := big.Uint16(b[6:])
	return string(b[:6]) == "LUKS\xba\xbe" && (version == 1 || version == 2)
}

const mdMagic = 0xa92b4efc

// isMD0 detects the superblock of version 0.90, which has the byte order of the machine that made it.
func isMD0(b []byte, _ int64) bool {
	return little.Uint32(b) == mdMagic && little.Uint32(b[4:]) == 0 ||
		big.Uint32(b) == mdMagic && big.Uint32(b[4:]) == 0
}

// isMD1 detects versions 1.0, 1.1 and 1.2, which differ only in their place.
func isMD1(b []byte, _ int64) bool {
	return little.Uint32(b) == mdMagic && little.Uint32(b[4:]) == 1
}

// isZFS looks for an uberblock in a label's ring. Its slots are 1 KiB or a larger power of two.
func isZFS(b []byte, _ int64) bool {
	const uberblock = 0x00bab10c
	for offset := 0; offset < len(b); offset += 1024 {
		if little.Uint64(b[offset:]) == uberblock || big.Uint64(b[offset:]) == uberblock {
			return true
		}
	}
	return false
}

// isMBR detects a partition table, even an empty or protective one, but not the boot sectors of file systems that end in
// the same two bytes.
func isMBR(b []byte, _ int64) bool {
	if b[510] != 0x55 || b[511] != 0xaa || isFAT(b, 0) || string(b[3:11]) == "NTFS    " || string(b[3:11]) == "EXFAT   " {
		return false
	}
	for entry := 446; entry < 510; entry += 16 {
		if b[entry]&0x7f != 0 {
			return false
		}
	}
	return true
}

// isGPT detects a GPT header, the first or the backup at the end.
func isGPT(b []byte, _ int64) bool {
	size := little.Uint32(b[12:])
	return string(b[:8]) == "EFI PART" && size >= 92 && size <= 4096
}
