package ioengine

// backendKind names a back end, as Generator.Backend and the option "backend" of a workload do.
type backendKind string

const (
	kindUring   backendKind = "io_uring"
	kindLibaio  backendKind = "libaio"  // asynchronous I/O of old; asynchronous with direct access only
	kindPsync   backendKind = "psync"   // pread and pwrite
	kindPvsync2 backendKind = "pvsync2" // preadv2 and pwritev2
	kindMmap    backendKind = "mmap"    // copies from and to the mapped file
	kindNull    backendKind = "null"    // nothing at all
	// kindNames makes, looks up or deletes the files of a job, each once. Only a job can choose it, by its ioengine.
	kindNames backendKind = "names"
	// See backend_calls.go.
	kindFalloc   backendKind = "falloc"
	kindTruncate backendKind = "ftruncate"
	kindCPU      backendKind = "cpuio"
)

var backendKinds = []backendKind{kindUring, kindLibaio, kindPsync, kindPvsync2, kindMmap, kindNull}

// backendOf maps fio's engines to ours. io_uring does what libaio and posixaio do with less work for each operation, and
// asynchronously also where libaio would block; Generator.Backend asks for libaio itself. sync seeks before each
// operation and vsync joins neighbours; they are done with pread and preadv2, which are what they measure.
func backendOf(ioengine string) (kind backendKind, synchronous, ok bool) {
	switch ioengine {
	case "libaio", "io_uring", "posixaio":
		return kindUring, false, true
	case "", "psync", "sync":
		return kindPsync, true, true
	case "vsync", "pvsync", "pvsync2":
		return kindPvsync2, true, true
	case "mmap":
		return kindMmap, true, true
	case "null":
		return kindNull, false, true
	case "filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete":
		return kindNames, true, true
	case "falloc", "ftruncate", "cpuio":
		return backendKind(ioengine), true, true
	}
	return "", false, false
}

// blocks tells whether each operation holds the thread that does it, so that every clone needs a worker of its own.
func (k backendKind) blocks() bool {
	return k != kindUring && k != kindLibaio && k != kindNull
}
