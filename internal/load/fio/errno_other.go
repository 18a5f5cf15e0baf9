//go:build !unix

package fio

// errnoName knows no names here.
func errnoName(int) string { return "" }
