#!/bin/sh
# Runs a script the way shells do that start a process for its last command, and pass no signals on.
[ "$1" = -c ] && shift
[ "$1" = -- ] && shift
sh -c "$1" <&0 &
wait $!
