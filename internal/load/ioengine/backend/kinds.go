package backend

// Kind names a back end, as Generator.Backend and the option "backend" of a workload do.
type Kind string

// Kinds of back ends.
const (
	KindUring   Kind = "io_uring"
	KindLibaio  Kind = "libaio"  // asynchronous I/O of old; asynchronous with direct access only
	KindPsync   Kind = "psync"   // pread and pwrite
	KindPvsync2 Kind = "pvsync2" // preadv2 and pwritev2
	KindMmap    Kind = "mmap"    // copies from and to the mapped file
	KindNull    Kind = "null"    // nothing at all
	// KindNames makes, looks up or deletes the files of a job, each once. Only a job can choose it, by its ioengine.
	KindNames Kind = "names"
	// See calls.go.
	KindFalloc   Kind = "falloc"
	KindTruncate Kind = "ftruncate"
	KindCPU      Kind = "cpuio"
)

// Kinds are the back ends that can be selected regardless of the job.
var Kinds = []Kind{KindUring, KindLibaio, KindPsync, KindPvsync2, KindMmap, KindNull}

// Of maps fio's engines to ours. io_uring does what libaio and posixaio do with less work for each operation, and
// asynchronously also where libaio would block; Generator.Backend asks for libaio itself. sync seeks before each
// operation and vsync joins neighbors; they are done with pread and preadv2, which are what they measure.
func Of(ioengine string) (kind Kind, synchronous, ok bool) {
	switch ioengine {
	case "libaio", "io_uring", "posixaio":
		return KindUring, false, true
	case "", "psync", "sync":
		return KindPsync, true, true
	case "vsync", "pvsync", "pvsync2":
		return KindPvsync2, true, true
	case "mmap":
		return KindMmap, true, true
	case "null":
		return KindNull, false, true
	case "filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete":
		return KindNames, true, true
	case "falloc", "ftruncate", "cpuio":
		return Kind(ioengine), true, true
	}
	return "", false, false
}

// Blocks reports whether each operation holds the thread that does it, so that every clone needs a worker of its own.
func (k Kind) Blocks() bool {
	return k != KindUring && k != KindLibaio && k != KindNull
}
