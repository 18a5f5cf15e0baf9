package blockdev

import (
	"bytes"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sample is the smallest content that is a structure of a name; negative offsets count from the end.
type sample struct {
	title  string
	name   string
	offset int64
	text   string
}

// image is zeros but for some parts.
type image struct {
	size   int64
	parts  map[int64]string
	broken int64 // reads behind this offset fail, 0 for none
}

func (m image) ReadAt(b []byte, offset int64) (int, error) {
	if m.broken > 0 && offset+int64(len(b)) > m.broken {
		return 0, errors.New("input/output error")
	}
	n := int(min(int64(len(b)), m.size-offset))
	clear(b[:n])
	for at, text := range m.parts {
		if at < 0 {
			at += m.size
		}
		for i := range len(text) {
			if place := at + int64(i) - offset; place >= 0 && place < int64(n) {
				b[place] = text[i]
			}
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// fields lays values into zeros: each is an offset and text.
func fields(length int, values ...any) string {
	b := make([]byte, length)
	for i := 0; i < len(values); i += 2 {
		copy(b[values[i].(int):], values[i+1].(string))
	}
	return string(b)
}

func le16(v uint16) string { return string(little.AppendUint16(nil, v)) }
func le32(v uint32) string { return string(little.AppendUint32(nil, v)) }
func le64(v uint64) string { return string(little.AppendUint64(nil, v)) }
func be32(v uint32) string { return string(big.AppendUint32(nil, v)) }
func be64(v uint64) string { return string(big.AppendUint64(nil, v)) }

func ext(compatible, incompatible, readOnly uint32) string {
	return fields(1024, 0, le32(128), 4, le32(1024), 56, "\x53\xef", 76, le32(1),
		92, le32(compatible), 96, le32(incompatible), 100, le32(readOnly))
}

func samples() []sample {
	gpt := fields(92, 0, "EFI PART", 8, le32(0x10000), 12, le32(92))
	lvm := fields(32, 0, "LABELONE", 24, "LVM2 001")
	return []sample{
		{"ext2", "ext2", 1024, ext(0, 2, 3)},
		{"ext3", "ext3", 1024, ext(4, 2, 3)},
		{"ext4", "ext4", 1024, ext(4, 0x42, 3)},
		{"journal of an ext4", "ext-journal", 1024, fields(1024, 4, le32(1024), 56, "\x53\xef", 76, le32(1), 96, le32(8))},
		{"xfs", "xfs", 0, "XFSB" + be32(4096)},
		{"btrfs", "btrfs", 65536 + 64, "_BHRfS_M"},
		{"swap of 4 KiB pages", "swap", 4086, "SWAPSPACE2"},
		{"swap of 64 KiB pages", "swap", 65526, "SWAPSPACE2"},
		{"suspended machine", "swap", 4086, "S1SUSPEND\x00"},
		{"LVM in the first sector", "lvm", 0, lvm},
		{"LVM in the second sector", "lvm", 512, lvm},
		{"MD 0.90", "md", -65536, le32(mdMagic) + le32(0)},
		{"MD 0.90, other byte order", "md", -65536, be32(mdMagic) + be32(0)},
		{"MD 1.0", "md", -8192, le32(mdMagic) + le32(1)},
		{"MD 1.1", "md", 0, le32(mdMagic) + le32(1)},
		{"MD 1.2", "md", 4096, le32(mdMagic) + le32(1)},
		{"LUKS1", "luks", 0, "LUKS\xba\xbe\x00\x01"},
		{"LUKS2", "luks", 0, "LUKS\xba\xbe\x00\x02"},
		{"second header of LUKS2", "luks", 0x4000, "SKUL\xba\xbe\x00\x02"},
		{"ZFS", "zfs", 128<<10 + 5*1024, le64(0x00bab10c)},
		{"ZFS of a big-endian machine", "zfs", 128 << 10, be64(0x00bab10c)},
		{"last label of ZFS", "zfs", -128 << 10, le64(0x00bab10c)},
		{"bcache", "bcache", 4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
		{"GPT", "gpt", 512, gpt},
		{"GPT of 4 KiB sectors", "gpt", 4096, gpt},
		{"backup of GPT", "gpt", -512, gpt},
		{"backup of GPT of 4 KiB sectors", "gpt", -4096, gpt},
		{"MBR", "dos", 0, fields(512, 446, "\x80", 450, "\x83", 454, le32(2048), 458, le32(8192), 510, "\x55\xaa")},
		{"ISO 9660", "iso9660", 32769, "CD001"},
		{"UDF", "udf", 32769, "BEA01"},
		{"NTFS", "ntfs", 0, fields(512, 0, "\xeb\x52\x90NTFS    ", 510, "\x55\xaa")},
		{"exFAT", "exfat", 0, fields(512, 0, "\xeb\x76\x90EXFAT   ", 510, "\x55\xaa")},
		{"FAT32", "fat", 0, fields(512, 0, "\xeb\x58\x90", 11, le16(512), 13, "\x08\x20\x00\x02", 21, "\xf8", 510, "\x55\xaa")},
		{"F2FS", "f2fs", 1024, le32(0xf2f52010)},
		{"squashfs", "squashfs", 0, fields(96, 0, "hsqs", 12, le32(131072), 22, le16(17))},
		{"erofs", "erofs", 1024, fields(128, 0, le32(0xe0f5e1e2), 12, "\x0c")},
		{"BlueStore", "bluestore", 0, "bluestore block device\n"},
		{"VMFS", "vmfs", 1 << 20, "\x0d\xd0\x01\xc0"},
	}
}

func sampleOf(title string) image {
	for _, s := range samples() {
		if s.title == title {
			return image{parts: map[int64]string{s.offset: s.text}}
		}
	}
	panic("no sample of " + title)
}

// Each structure is found at its place, once, and nothing else with it: at sizes that are whole in different units.
func TestSignatures(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.title, func(t *testing.T) {
			for _, size := range []int64{64 << 20, 64<<20 + 4096, 64<<20 + 65536 - 512} {
				found := s.text
				place := s.offset
				if place < 0 {
					place = tailPlace(s, size)
				}
				m := image{size: size, parts: map[int64]string{place: found}}
				got, err := signatures(m, size)
				want := []Signature{{Name: s.name, Offset: got0(got)}}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("size %d: found %v, %v, want one %s", size, got, err, s.name)
				}
			}
		})
	}
}

// tailPlace is where formats whose place is rounded have it, by the rules of the formats and not by the code's.
func tailPlace(s sample, size int64) int64 {
	down := func(unit int64) int64 { return size / unit * unit }
	switch {
	case strings.HasPrefix(s.title, "MD 0.90"):
		return down(65536) - 65536
	case s.title == "MD 1.0":
		return (size/sectorBytes - 16) / 8 * 8 * sectorBytes
	case s.name == "zfs":
		return down(256<<10) - 128<<10
	}
	return size + s.offset
}

func got0(found []Signature) int64 {
	if len(found) == 0 {
		return -1
	}
	return found[0].Offset
}

// noise is random bytes that depend on the place only.
type noise uint64

func (n noise) ReadAt(b []byte, offset int64) (int, error) {
	for i := range b {
		at := uint64(offset + int64(i))
		if i == 0 || at%8 == 0 {
			h := fnv.New64a()
			h.Write(little.AppendUint64(little.AppendUint64(nil, uint64(n)), at/8))
			r := rand.New(rand.NewPCG(h.Sum64(), uint64(n)))
			word := little.AppendUint64(nil, r.Uint64())
			copy(b[i:], word[at%8:])
		}
	}
	return len(b), nil
}

// A load leaves random bytes behind, which must not look like a file system.
func TestRandomBytesAreNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a lot")
	}
	for seed := range noise(20) {
		found, err := signatures(seed, 64<<20)
		if err != nil || len(found) > 0 {
			t.Errorf("seed %d: found %v, %v", seed, found, err)
		}
	}
	// The shortest magic, that of ext, is put among random bytes many times.
	block := make([]byte, 1024)
	mistaken := 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		for i := 0; i < len(block); i += 8 {
			little.PutUint64(block[i:], r.Uint64())
		}
		copy(block[56:], "\x53\xef")
		if isExt(block, 0) {
			mistaken++
		}
	}
	if mistaken > 0 {
		t.Errorf("%d of 100000 random blocks with the magic of ext were taken for ext", mistaken)
	}
}

// A device that is too small for a structure is read within its size only.
func TestSignaturesOfSmallDevices(t *testing.T) {
	for _, size := range []int64{0, 1, 511, 512, 1024, 4096, 65536, 300 << 10} {
		m := image{size: size}
		if found, err := signatures(m, size); err != nil || len(found) > 0 {
			t.Errorf("size %d: %v, %v", size, found, err)
		}
		if c, faults := readContent(m, size, nil); len(faults) > 0 || !c.HeadZero || !c.TailZero {
			t.Errorf("size %d: %+v, %v", size, c, faults)
		}
	}
}

func FuzzContent(f *testing.F) {
	for _, s := range samples() {
		f.Add([]byte(s.text), max(s.offset, 0))
	}
	f.Fuzz(func(t *testing.T, text []byte, offset int64) {
		size := int64(8 << 20)
		m := image{size: size, parts: map[int64]string{offset % size: string(text)}}
		c, faults := readContent(m, size, []Partition{{"p1", 1 << 20, 4 << 20}, {"p2", offset, size}})
		if inside := offset == 0; inside != (len(faults) == 0) {
			t.Errorf("faults %v", faults)
		}
		for _, sig := range c.Signatures {
			if sig.Name == "" || nameOf(sig.Name) == "" {
				t.Errorf("signature %+v", sig)
			}
		}
	})
}

func TestAlignedReader(t *testing.T) {
	data := make([]byte, 10_000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	r := alignedReader{from: bytes.NewReader(data), size: int64(len(data)), align: 4096}
	for _, at := range [][2]int64{{0, 1}, {4095, 2}, {4096, 4096}, {9_000, 1000}, {1, 9_999}} {
		b := make([]byte, at[1])
		if err := readFull(r, b, at[0]); err != nil || !bytes.Equal(b, data[at[0]:at[0]+at[1]]) {
			t.Errorf("read %v: %v", at, err)
		}
	}
	if err := readFull(r, make([]byte, 2), 9_999); err == nil {
		t.Error("read past the end without an error")
	}
}
