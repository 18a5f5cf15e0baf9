//go:build !unix

package run

func openFilesMax() int { return 0 }
