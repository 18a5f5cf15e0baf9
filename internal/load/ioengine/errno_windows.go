package ioengine

func errnoName(int) string { return "" }
