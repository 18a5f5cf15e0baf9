package ioengine

import (
	"encoding/hex"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Commands have the layout of SBC, the short one as long as block numbers and counts fit.
func TestSCSICommandLayout(t *testing.T) {
	if size := unsafe.Sizeof(scsiHeader{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 88 {
		t.Fatalf("the header has %d bytes, the kernel's 88", size)
	}
	plain, through := fiojob.SCSI{}, fiojob.SCSI{ReadThrough: true, WriteThrough: true}
	mode := func(name string) fiojob.SCSI { return fiojob.SCSI{WriteMode: name} }
	const tib = int64(1) << 40
	for _, c := range []struct {
		settings     fiojob.SCSI
		kind         opKind
		offset, size int64
		block        int64
		command      string
		moved        uint32
	}{
		{plain, opRead, 1 << 20, 4096, 512, "2800 00000800 00 0008 00", 4096},
		{through, opRead, 1 << 20, 4096, 4096, "2808 00000100 00 0001 00", 4096},
		{plain, opWrite, 2*tib - 4096, 4096 - 512, 512, "2a00 fffffff8 00 0007 00", 3584},
		{plain, opWrite, 2*tib - 4096, 4096, 512, "8a00 00000000fffffff8 00000008 0000", 4096},
		{through, opWrite, 3 * tib, 4096, 512, "8a08 0000000180000000 00000008 0000", 4096},
		{plain, opRead, 0, 65536 * 512, 512, "8800 0000000000000000 00010000 0000", 65536 * 512},
		{plain, opRead, 0, 65535 * 512, 512, "2800 00000000 00 ffff 00", 65535 * 512},
		{mode(fiojob.SCSIWriteAndVerify), opWrite, 512, 512, 512, "2e00 00000001 00 0001 00", 512},
		{mode(fiojob.SCSIWriteSame), opWrite, 512, 4096, 512, "4100 00000001 00 0008 00", 512},
		{mode(fiojob.SCSIWriteSameNDOB), opWrite, 512, 4096, 512, "9301 0000000000000001 00000008 0000", 0},
		{mode(fiojob.SCSIVerify), opWrite, 512, 4096, 512, "2f00 00000001 00 0008 00", 0},
		{mode(fiojob.SCSICompare), opWrite, 512, 4096, 512, "2f02 00000001 00 0008 00", 4096},
		{mode(fiojob.SCSICompareSame), opWrite, 512, 4096, 512, "2f06 00000001 00 0008 00", 512},
		{mode(fiojob.SCSICompare), opWrite, 4 * tib, 4096, 512, "8f02 0000000200000000 00000008 0000", 4096},
		{plain, opTrim, 4 * tib, 1 << 20, 512, "4200 00000000 00 0018 00", 24},
		{plain, opSync, 0, 0, 512, "3500 00000000 00 0000 00", 0},
	} {
		s := &scsi{settings: c.settings}
		call := &scsiCall{}
		of := &slot{kind: c.kind, offset: c.offset, size: c.size, file: &file{align: c.block}, buffer: make([]byte, 1)}
		s.build(call, of)
		want, err := hex.DecodeString(stripBlanks(c.command))
		if err != nil {
			t.Fatal(err)
		}
		if got := call.command[:call.header.commandSize]; string(got) != string(want) || call.header.size != c.moved || (call.header.data == nil) != (c.moved == 0) {
			t.Errorf("kind %d of %d bytes at %d, %+v: % x, %d bytes; want % x, %d", c.kind, c.size, c.offset, c.settings, got, call.header.size, want, c.moved)
		}
		if c.kind == opTrim && hex.EncodeToString(call.list[:]) != "00160010000000000000000200000000"+"0000080000000000" {
			t.Errorf("list of UNMAP: % x", call.list)
		}
	}
}

func stripBlanks(text string) string {
	var out []byte
	for i := range len(text) {
		if text[i] != ' ' {
			out = append(out, text[i])
		}
	}
	return string(out)
}

// What a device says becomes an error number of its own, and another try only where nothing was done.
func TestSCSIFaults(t *testing.T) {
	of := &slot{kind: opWrite, size: 4096}
	for _, c := range []struct {
		status uint8
		sense  []byte
		result int32
		again  bool
	}{
		{scsiCheckCondition, []byte{0x70, 0, senseIllegal}, -int32(unix.EREMOTEIO), false},
		{scsiCheckCondition, []byte{0x72, senseMiscompare, 0x1d}, -int32(unix.EILSEQ), false},
		{scsiCheckCondition, []byte{0xf0, 0, senseMedium}, -int32(unix.ENODATA), false},
		{scsiCheckCondition, []byte{0x72, senseProtect, 0}, -int32(unix.EROFS), false},
		{scsiCheckCondition, []byte{0x70, 0, senseNotReady}, -int32(unix.ENOMEDIUM), false},
		{scsiCheckCondition, []byte{0x70, 0, senseAttention}, -int32(unix.EAGAIN), true},
		{scsiCheckCondition, []byte{0x70, 0, senseRecovered}, 4096, false},
		{scsiCheckCondition, nil, -int32(unix.EIO), false},
		{scsiBusy, nil, -int32(unix.EBUSY), true},
		{scsiConflict, nil, -int32(unix.EBADE), false},
		{0, nil, -int32(unix.EIO), false}, // the host's or the driver's fault
	} {
		call := &scsiCall{}
		call.header.status, call.header.senseLength = c.status, uint8(copy(call.sense[:], c.sense))
		if result, again := call.fault(of); result != c.result || again != c.again {
			t.Errorf("status %#x, sense % x: %d, %v; want %d, %v", c.status, c.sense, result, again, c.result, c.again)
		}
	}
}

func FuzzSense(f *testing.F) {
	f.Add([]byte{0x70, 0, 5})
	f.Add([]byte{0x73, 0xe})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sense []byte) {
		if key := senseKey(sense); key > 0xf || key != 0 && len(sense) < 3 {
			t.Errorf("% x: key %#x", sense, key)
		}
	})
}
