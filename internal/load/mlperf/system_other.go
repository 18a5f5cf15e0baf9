//go:build !linux

package mlperf

import (
	"os"
	"time"
)

func forget(*os.File) {}

func nap(d time.Duration) { time.Sleep(d) }

func memoryBytes() int64 { return 0 }
