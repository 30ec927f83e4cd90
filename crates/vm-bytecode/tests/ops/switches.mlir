// Switches between refs, which IREE's assembler has no syntax for. The compiler marks the last use of each as a move.
vm.module @switches {
  vm.rodata private @zero dense<0> : tensor<1xi8>
  vm.rodata private @one dense<17> : tensor<1xi8>
  vm.rodata private @two dense<34> : tensor<1xi8>

  // The operands are used afterwards, so they are copied.
  vm.export @copies
  vm.func @copies(%index: i32) -> (i32, i32) {
    %zero = vm.const.ref.rodata @zero : !vm.buffer
    %one = vm.const.ref.rodata @one : !vm.buffer
    %two = vm.const.ref.rodata @two : !vm.buffer
    %picked = vm.switch.ref %index[%zero, %one] else %two : !vm.buffer
    %offset = vm.const.i64 0
    %byte = vm.buffer.load.i8.u %picked[%offset] : !vm.buffer -> i32
    %is_one = vm.cmp.eq.ref %picked, %one : !vm.buffer
    vm.return %byte, %is_one : i32, i32
  }

  // Nothing is used afterwards.
  vm.export @moves
  vm.func @moves(%index: i32) -> i32 {
    %zero = vm.const.ref.rodata @zero : !vm.buffer
    %one = vm.const.ref.rodata @one : !vm.buffer
    %two = vm.const.ref.rodata @two : !vm.buffer
    %picked = vm.switch.ref %index[%zero, %one] else %two : !vm.buffer
    %offset = vm.const.i64 0
    %byte = vm.buffer.load.i8.u %picked[%offset] : !vm.buffer -> i32
    vm.return %byte : i32
  }

  // What comes from outside may be of another type than it says.
  vm.export @checks
  vm.func @checks(%index: i32, %first: !vm.buffer, %second: !vm.buffer) -> i32 {
    %picked = vm.switch.ref %index[%first] else %second : !vm.buffer
    %is_there = vm.cmp.nz.ref %picked : !vm.buffer
    vm.return %is_there : i32
  }
}
