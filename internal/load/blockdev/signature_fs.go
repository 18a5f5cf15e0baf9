package blockdev

// isExt detects the superblock of ext2, ext3 and ext4. Its magic is only two bytes, so it checks the fields beside it too.
func isExt(b []byte, _ int64) bool {
	inodes, blocks := little.Uint32(b), little.Uint32(b[4:])
	logBlock, revision := little.Uint32(b[24:]), little.Uint32(b[76:])
	return little.Uint16(b[56:]) == 0xef53 && blocks > 0 && logBlock <= 6 && revision <= 1 &&
		(inodes > 0 || little.Uint32(b[96:])&extJournalDevice != 0)
}

// Bits of the features of ext file systems.
const (
	extHasJournal    = 0x4    // compatible
	extJournalDevice = 0x8    // incompatible: the device is the journal of another file system
	extSinceExt4     = ^0x1f  // incompatible: all except compression, file types, recovery, journal device, meta groups
	extReadOnly4     = ^0x007 // read-only compatible: all except sparse superblocks, large files, tree directories
)

// extVersion distinguishes the three by their features.
func extVersion(b []byte) string {
	compatible, incompatible, readOnly := int(little.Uint32(b[92:])), int(little.Uint32(b[96:])), int(little.Uint32(b[100:]))
	switch {
	case incompatible&extJournalDevice != 0:
		return "ext-journal"
	case incompatible&extSinceExt4 != 0 || readOnly&extReadOnly4 != 0:
		return "ext4"
	case compatible&extHasJournal != 0:
		return "ext3"
	}
	return "ext2"
}

func isXFS(b []byte, _ int64) bool {
	block := big.Uint32(b[4:])
	return string(b[:4]) == "XFSB" && block >= 512 && block <= 65536 && block&(block-1) == 0
}

// isFAT detects a boot sector by its jump, its plausible geometry and its final bytes; the type names that some programs
// write are not reliable.
func isFAT(b []byte, _ int64) bool {
	sector, cluster := little.Uint16(b[11:]), b[13]
	jump := b[0] == 0xeb && b[2] == 0x90 || b[0] == 0xe9
	return jump && b[510] == 0x55 && b[511] == 0xaa &&
		sector >= 512 && sector <= 4096 && sector&(sector-1) == 0 &&
		cluster > 0 && cluster&(cluster-1) == 0 &&
		little.Uint16(b[14:]) > 0 && (b[16] == 1 || b[16] == 2) &&
		(b[21] == 0xf0 || b[21] >= 0xf8)
}

func isSquashfs(b []byte, _ int64) bool {
	block, log := little.Uint32(b[12:]), little.Uint16(b[22:])
	return string(b[:4]) == "hsqs" && log >= 12 && log <= 20 && block == 1<<log ||
		string(b[:4]) == "sqsh"
}

func isErofs(b []byte, _ int64) bool {
	return little.Uint32(b) == 0xe0f5e1e2 && b[12] >= 9 && b[12] <= 16
}
