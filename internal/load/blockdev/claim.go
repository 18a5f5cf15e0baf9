package blockdev

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// The claim tag is at the start of the last whole ClaimBytes of a device, far enough from the end for every block size of
// Linux. docs/guides/devices.md describes its layout.
const (
	ClaimBytes = 64 << 10

	claimMagic   = "BRAGGTAG"
	claimVersion = 1
	claimLength  = 512 // of the tag itself; the rest of ClaimBytes is zeros
	claimText    = 64  // bytes of each name in it
	claimSizeMin = 4 << 20

	// wipeHead and wipeTail are the areas that Claim zeroes. They cover every known signature on a whole device.
	wipeHead = 8 << 20
	wipeTail = 1 << 20
)

// Tag marks a device as claimed by a controller, so that later runs of the same controller may write without another
// consent.
type Tag struct {
	Controller string // the controller that claimed the device, at most 64 bytes
	Run        string // the run that did, at most 64 bytes
	Identity   string // the serial number or WWN of the device, so that a copy on another disk is not valid
	SizeBytes  int64  // of the device, also to detect a copy
	Claimed    time.Time
}

// NewTag returns a tag for a device in this state.
func (s State) NewTag(controller, run string) Tag {
	return Tag{Controller: controller, Run: run, Identity: clip(s.Identity()), SizeBytes: s.SizeBytes}
}

func clip(text string) string { return text[:min(len(text), claimText)] }

// UsableBytes is the size that a load may write to without destroying the claim tag.
func UsableBytes(size int64) int64 { return size/ClaimBytes*ClaimBytes - ClaimBytes }

// encode encodes the whole claim area. Numbers are little-endian; the checksum covers the tag after it.
func (t Tag) encode() ([]byte, error) {
	b := make([]byte, ClaimBytes)
	copy(b, claimMagic)
	little.PutUint32(b[8:], claimVersion)
	little.PutUint64(b[16:], uint64(t.SizeBytes))
	little.PutUint64(b[24:], uint64(t.Claimed.Unix()))
	for i, text := range []string{t.Controller, t.Run, t.Identity} {
		if len(text) > claimText {
			return nil, fmt.Errorf("claim: %q has more than %d bytes", text, claimText)
		}
		copy(b[32+i*claimText:], text)
	}
	if t.Controller == "" {
		return nil, fmt.Errorf("claim: a tag needs the controller's id")
	}
	little.PutUint32(b[12:], crc32.Checksum(b[16:claimLength], crc32.MakeTable(crc32.Castagnoli)))
	return b, nil
}

// decode decodes a tag; nil if there is none or it is damaged.
func decode(b []byte) *Tag {
	sum := crc32.Checksum(b[16:claimLength], crc32.MakeTable(crc32.Castagnoli))
	if !bytes.HasPrefix(b, []byte(claimMagic)) || little.Uint32(b[8:]) != claimVersion || little.Uint32(b[12:]) != sum {
		return nil
	}
	text := func(i int) string {
		return string(bytes.TrimRight(b[32+i*claimText:32+(i+1)*claimText], "\x00"))
	}
	return &Tag{
		Controller: text(0), Run: text(1), Identity: text(2),
		SizeBytes: int64(little.Uint64(b[16:])), Claimed: time.Unix(int64(little.Uint64(b[24:])), 0).UTC(),
	}
}

// readTag reads the tag of a device of this size; nil without one.
func readTag(r io.ReaderAt, size int64) (*Tag, error) {
	b := make([]byte, claimLength)
	if err := readFull(r, b, UsableBytes(size)); err != nil {
		return nil, err
	}
	return decode(b), nil
}

// medium is what Claim writes to.
type medium interface {
	io.WriterAt
	Sync() error
}

// Claim claims a device: it zeroes the first 8 MiB and the last MiB, so that data found there later was written later, and
// writes the tag. The caller has passed Check and holds the device open by Open. Claim sets size and time of the tag if
// they are missing. The kernel forgets partitions of a wiped table.
func Claim(device medium, size int64, tag Tag) error {
	if size < claimSizeMin {
		return fmt.Errorf("claim: a device of %d bytes is smaller than the least of %d", size, claimSizeMin)
	}
	if tag.SizeBytes == 0 {
		tag.SizeBytes = size
	}
	if tag.Claimed.IsZero() {
		tag.Claimed = time.Now()
	}
	block, err := tag.encode()
	if err != nil {
		return err
	}
	for _, part := range [][2]int64{{0, min(wipeHead, size)}, {size - wipeTail, wipeTail}} {
		if err := writeZeros(device, part[0], part[1]); err != nil {
			return fmt.Errorf("claim: empty %d bytes at %d: %w", part[1], part[0], err)
		}
	}
	aligned := alignedBuffer(len(block))
	copy(aligned, block)
	if _, err := device.WriteAt(aligned, UsableBytes(size)); err != nil {
		return fmt.Errorf("claim: write the tag: %w", err)
	}
	if err := device.Sync(); err != nil {
		return fmt.Errorf("claim: flush the tag: %w", err)
	}
	forgetPartitions(device)
	return nil
}

func writeZeros(device io.WriterAt, offset, length int64) error {
	zeros := alignedBuffer(1 << 20)
	for length > 0 {
		n := min(length, int64(len(zeros)))
		if _, err := device.WriteAt(zeros[:n], offset); err != nil {
			return err
		}
		offset, length = offset+n, length-n
	}
	return nil
}
