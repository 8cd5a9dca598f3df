module.exports = {
  dependency: { platforms: { android: { cmakeListsPath: 'generated/jni/CMakeLists.txt' } } },
};
