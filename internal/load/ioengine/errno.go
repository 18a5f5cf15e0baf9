package ioengine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
)

// Error classes are errno numbers, and numbers above them for what has no errno.
const (
	errnoMax        = 200
	classShortRead  = errnoMax + 1
	classShortWrite = errnoMax + 2
	errorClassCount = errnoMax + 3
)

// errorClass returns the class of a result that is not the whole size: negative results are −errno.
func errorClass(direction uint8, result int32) int {
	switch {
	case result >= 0 && direction == uint8(interval.Read):
		return classShortRead
	case result >= 0:
		return classShortWrite
	case result < -errnoMax:
		return 0
	}
	return int(-result)
}

func errorClassName(class int) string {
	switch class {
	case classShortRead:
		return "short-read"
	case classShortWrite:
		return "short-write"
	}
	if name := errnoName(class); name != "" {
		return name
	}
	return fmt.Sprintf("errno-%d", class)
}
