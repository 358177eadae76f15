package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

// newLog returns a logger in the configured format and the switch of its level.
func newLog(w io.Writer, c config.Log) (*zap.Logger, zap.AtomicLevel) {
	level := zap.NewAtomicLevelAt(logLevel(c))
	format := zap.NewProductionEncoderConfig()
	format.TimeKey = "time"
	format.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	format.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(format)
	if c.Format == "console" {
		format.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(format)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)
	return zap.New(core), level
}

func logLevel(c config.Log) zapcore.Level {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil { // the configuration has only levels that zap knows
		return zapcore.InfoLevel
	}
	return level
}
