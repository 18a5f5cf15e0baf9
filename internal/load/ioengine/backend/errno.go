package backend

import (
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
)

// Error classes are errno numbers, and numbers above them for what has no errno.
const (
	errnoMax        = 200
	classShortRead  = errnoMax + 1
	ClassShortWrite = errnoMax + 2
	ErrorClassCount = errnoMax + 3
)

// ErrorClass returns the class of a result that is not the whole size: negative results are −errno.
func ErrorClass(direction uint8, result int32) int {
	switch {
	case result >= 0 && direction == uint8(interval.Read):
		return classShortRead
	case result >= 0:
		return ClassShortWrite
	case result < -errnoMax:
		return 0
	}
	return int(-result)
}

// ErrorClassName returns the name of a class: that of its errno, or of a short transfer.
func ErrorClassName(class int) string {
	switch class {
	case classShortRead:
		return "short-read"
	case ClassShortWrite:
		return "short-write"
	}
	if name := errnoName(class); name != "" {
		return name
	}
	return fmt.Sprintf("errno-%d", class)
}
