package ioengine

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

// scsi does operations as SCSI commands: SBC for their layout, SPC for what a device answers.
type scsi struct {
	settings fiojob.SCSI
	// calls are those that no thread uses: the kernel needs them to stay where they are.
	calls sync.Pool
}

// scsiCall is one call of SG_IO with all that it points to.
type scsiCall struct {
	header  scsiHeader
	command [16]byte
	sense   [64]byte
	list    [24]byte // of UNMAP
}

// scsiHeader is struct sg_io_hdr of scsi/sg.h.
type scsiHeader struct {
	interfaceID int32
	direction   int32
	commandSize uint8
	senseSize   uint8
	_           uint16
	size        uint32
	data        unsafe.Pointer
	command     unsafe.Pointer
	sense       unsafe.Pointer
	timeout     uint32 // ms
	flags       uint32
	_           int32
	_           unsafe.Pointer
	status      uint8
	_           [2]uint8
	senseLength uint8
	host        uint16
	driver      uint16
	residual    int32
	_           uint32 // how long it took, ms
	info        uint32
}

const (
	ioctlSCSI     = 0x2285 // SG_IO
	scsiInterface = 'S'
	scsiNoData    = -1
	scsiToDevice  = -2
	scsiToHost    = -3
	scsiFault     = 1 // of info: some status is not zero
	// scsiTimeoutMillis is what the kernel's driver for disks gives a command.
	scsiTimeoutMillis = 30_000
	// scsiTriesMax bounds how often a command is given to a device that says that something else happened to it.
	scsiTriesMax = 5
)

// Operation codes.
const (
	scsiRead10, scsiRead16                     = 0x28, 0x88
	scsiWrite10, scsiWrite16                   = 0x2a, 0x8a
	scsiWriteAndVerify10, scsiWriteAndVerify16 = 0x2e, 0x8e
	scsiVerify10, scsiVerify16                 = 0x2f, 0x8f
	scsiWriteSame10, scsiWriteSame16           = 0x41, 0x93
	scsiSynchronizeCache10                     = 0x35
	scsiUnmap                                  = 0x42
)

// Bits of the second byte of commands.
const (
	scsiFUA       = 0x08
	scsiNoDataOut = 0x01 // of WRITE SAME(16)
	scsiByteCheck = 0x02 // of VERIFY: the lower of two bits
)

func newSCSIBackend(w *worker) (backend, error) {
	s := &scsi{settings: w.lanes[0].job.job.Control.SCSI}
	s.calls.New = func() any { return new(scsiCall) }
	b := newPsyncBackend(w.slots, kindSCSI)
	b.perform = s.perform
	return b, nil
}

// toSCSI makes a file ready for commands past the page cache, which must neither hold what is not written nor answer later
// with what was there before. It returns the device's block and the most that one command moves, in bytes.
func (f *file) toSCSI() (blockBytes, transferMax int64, err error) {
	disk, err := blockdev.SCSIDiskOf(f.handle)
	if err != nil {
		return 0, 0, err
	}
	if disk.BlockBytes <= 0 {
		return 0, 0, errors.New("the size of its blocks is not known")
	}
	if errno := f.sync(false); errno < 0 {
		return 0, 0, unix.Errno(-errno)
	}
	f.forget()
	f.forgets = true
	return disk.BlockBytes, disk.TransferBytesMax, nil
}

// perform does one operation and returns the bytes transferred or −errno.
func (s *scsi) perform(of *slot) int32 {
	call := s.calls.Get().(*scsiCall)
	defer s.calls.Put(call)
	for try := 1; ; try++ {
		s.build(call, of)
		result, again := call.do(of)
		if !again || try == scsiTriesMax {
			return result
		}
	}
}

// build writes the command of an operation.
func (s *scsi) build(call *scsiCall, of *slot) {
	*call = scsiCall{}
	blockBytes := of.file.align
	first, count := uint64(of.offset/blockBytes), uint32(of.size/blockBytes)
	h := &call.header
	switch of.kind {
	case opRead:
		call.transfer(scsiRead10, scsiRead16, first, count)
		if s.settings.ReadThrough {
			call.command[1] |= scsiFUA
		}
		h.direction, h.size = scsiToHost, uint32(of.size)
	case opWrite:
		s.buildWrite(call, first, count, uint32(of.size), uint32(blockBytes))
	case opTrim:
		call.command[0], call.command[8], h.commandSize = scsiUnmap, byte(len(call.list)), 10
		binary.BigEndian.PutUint16(call.list[0:], uint16(len(call.list)-2))
		binary.BigEndian.PutUint16(call.list[2:], uint16(len(call.list)-8))
		binary.BigEndian.PutUint64(call.list[8:], first)
		binary.BigEndian.PutUint32(call.list[16:], count)
		h.direction, h.size, h.data = scsiToDevice, uint32(len(call.list)), unsafe.Pointer(&call.list)
	default: // a flush, of the whole disk
		call.command[0], h.commandSize, h.direction = scsiSynchronizeCache10, 10, scsiNoData
	}
	if h.data == nil && h.size > 0 {
		h.data = unsafe.Pointer(&of.buffer[0])
	}
}

// buildWrite writes the command that the job's writes are.
func (s *scsi) buildWrite(call *scsiCall, first uint64, count, size, blockBytes uint32) {
	h := &call.header
	h.direction, h.size = scsiToDevice, size
	switch s.settings.WriteMode {
	default:
		call.transfer(scsiWrite10, scsiWrite16, first, count)
		if s.settings.WriteThrough {
			call.command[1] |= scsiFUA
		}
	case fiojob.SCSIWriteAndVerify:
		call.transfer(scsiWriteAndVerify10, scsiWriteAndVerify16, first, count)
	case fiojob.SCSIWriteSame:
		call.transfer(scsiWriteSame10, scsiWriteSame16, first, count)
		h.size = blockBytes
	case fiojob.SCSIWriteSameNDOB:
		call.transfer16(scsiWriteSame16, first, count)
		call.command[1] |= scsiNoDataOut
		h.direction, h.size = scsiNoData, 0
	case fiojob.SCSIVerify:
		call.transfer(scsiVerify10, scsiVerify16, first, count)
		h.direction, h.size = scsiNoData, 0
	case fiojob.SCSICompare:
		call.transfer(scsiVerify10, scsiVerify16, first, count)
		call.command[1] |= scsiByteCheck
	case fiojob.SCSICompareSame:
		call.transfer(scsiVerify10, scsiVerify16, first, count)
		call.command[1] |= 3 * scsiByteCheck
		h.size = blockBytes
	}
}

// transfer writes the short command for a range where it reaches, else the long one.
func (c *scsiCall) transfer(short, long byte, first uint64, count uint32) {
	if first+uint64(count) > 1<<32-1 || count > 1<<16-1 {
		c.transfer16(long, first, count)
		return
	}
	c.command[0], c.header.commandSize = short, 10
	binary.BigEndian.PutUint32(c.command[2:], uint32(first))
	binary.BigEndian.PutUint16(c.command[7:], uint16(count))
}

func (c *scsiCall) transfer16(code byte, first uint64, count uint32) {
	c.command[0], c.header.commandSize = code, 16
	binary.BigEndian.PutUint64(c.command[2:], first)
	binary.BigEndian.PutUint32(c.command[10:], count)
}

// do gives the command to the device; again says that it is worth another try.
func (c *scsiCall) do(of *slot) (result int32, again bool) {
	h := &c.header
	h.interfaceID, h.timeout = scsiInterface, scsiTimeoutMillis
	h.command, h.sense, h.senseSize = unsafe.Pointer(&c.command), unsafe.Pointer(&c.sense), uint8(len(c.sense))
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(of.file.fd), ioctlSCSI, uintptr(unsafe.Pointer(h)))
	runtime.KeepAlive(c)
	h.data = nil // buffers may go before this call does
	switch {
	case errno == unix.EINTR: // it never began: while it waits for the device, only its own end wakes the caller
		return -int32(errno), true
	case errno != 0:
		return -int32(errno), false
	case h.info&scsiFault != 0:
		return c.fault(of)
	case (of.kind == opRead || of.kind == opWrite) && h.residual > 0:
		return int32(of.size) - h.residual, false
	}
	return c.whole(of), false
}

// whole is the result of an operation that did all that it should.
func (c *scsiCall) whole(of *slot) int32 {
	switch of.kind {
	case opRead, opWrite:
		return int32(of.size)
	case opTrim:
		return wholeSize
	}
	return 0
}

// Status and sense keys of SPC.
const (
	scsiCheckCondition = 0x02
	scsiBusy           = 0x08
	scsiConflict       = 0x18
	scsiTaskSetFull    = 0x28

	senseRecovered   = 0x1
	senseNotReady    = 0x2
	senseMedium      = 0x3
	senseIllegal     = 0x5
	senseAttention   = 0x6
	senseProtect     = 0x7
	senseMiscompare  = 0xe
	senseFixed       = 0x70 // response codes: fixed and descriptor format, each for this command or an earlier one
	senseDescriptors = 0x72
)

// senseKey returns the key of what a device says of its fault.
func senseKey(sense []byte) byte {
	if len(sense) < 3 {
		return 0
	}
	switch sense[0] & 0x7e {
	case senseFixed:
		return sense[2] & 0xf
	case senseDescriptors:
		return sense[1] & 0xf
	}
	return 0
}

// fault turns what the device answered into an error number.
func (c *scsiCall) fault(of *slot) (result int32, again bool) {
	h := &c.header
	switch {
	case h.status&0x3e == scsiConflict:
		return -int32(unix.EBADE), false
	case h.status&0x3e == scsiBusy || h.status&0x3e == scsiTaskSetFull:
		return -int32(unix.EBUSY), true
	case h.status&0x3e != scsiCheckCondition:
		return -int32(unix.EIO), false
	}
	switch senseKey(c.sense[:min(int(h.senseLength), len(c.sense))]) {
	case senseRecovered:
		return c.whole(of), false
	case senseNotReady:
		return -int32(unix.ENOMEDIUM), false
	case senseMedium:
		return -int32(unix.ENODATA), false
	case senseIllegal:
		return -int32(unix.EREMOTEIO), false
	case senseAttention:
		return -int32(unix.EAGAIN), true
	case senseProtect:
		return -int32(unix.EROFS), false
	case senseMiscompare:
		return -int32(unix.EILSEQ), false
	}
	return -int32(unix.EIO), false
}
